# SPDX-License-Identifier: Apache-2.0
"""Counting is exact: repeatable, and linear in what the guest does."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from colibri.boards import list_boards, load_board
from colibri.errors import ElfError, NoVerdict
from colibri_sim.qemu.counter import Block, count, parse, profile
from colibri_sim.qemu.frames import END, encode
from colibri_sim.qemu.plugins import check_version, complete_lines
from colibri_sim.qemu.runner import TargetFault

pytestmark = pytest.mark.qemu

EchoBuilder = Callable[..., Path]
BOARDS = tuple(list_boards())
MARKERS = ["echo_begin", "echo_end"]


def spin(*rounds: int) -> bytes:
    return b"".join(encode("n", struct.pack("<I", n)) for n in rounds) + END


@pytest.mark.parametrize("board", BOARDS)
def test_two_runs_count_the_same(echo: EchoBuilder, board: str) -> None:
    counts = [count(load_board(board), echo(board), spin(1000, 5), MARKERS) for _ in range(2)]
    assert counts[0] == counts[1]
    assert [*MARKERS, *MARKERS, "end"] == [name for name, _ in counts[0]]


@pytest.mark.parametrize("board", BOARDS)
def test_each_round_costs_the_same(echo: EchoBuilder, board: str) -> None:
    numbers = [n for _, n in count(load_board(board), echo(board), spin(1000, 2000, 3000), MARKERS)]
    cost = [numbers[i + 1] - numbers[i] for i in (0, 2, 4)]
    assert cost[1] - cost[0] == cost[2] - cost[1]
    assert (cost[1] - cost[0]) % 1000 == 0
    assert 2 <= (cost[1] - cost[0]) // 1000 <= 8


def test_an_unknown_marker_is_an_elf_error(echo: EchoBuilder) -> None:
    with pytest.raises(ElfError, match="echo_middle"):
        count(load_board("mps2-an386"), echo("mps2-an386"), spin(1), ["echo_middle"])


def test_a_fault_while_counting_is_reported(echo: EchoBuilder) -> None:
    with pytest.raises(TargetFault):
        count(load_board("mps2-an386"), echo("mps2-an386"), encode("p"), MARKERS)


@pytest.mark.parametrize(("text", "known"), [("7.2.22", True), ("8.2.0", True), ("9.0.1", False), ("5.1", False)])
def test_an_unknown_plugin_interface_is_no_verdict(tmp_path: Path, text: str, known: bool) -> None:
    binary = tmp_path / "qemu"
    binary.write_text(f"#!/bin/sh\necho QEMU emulator version {text}\n")
    binary.chmod(0o755)
    if known:
        check_version(str(binary))
    else:
        with pytest.raises(NoVerdict):
            check_version(str(binary))


def test_a_list_cut_short_is_no_verdict(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt"
    with pytest.raises(NoVerdict, match="none"):
        complete_lines(path, "qemu")
    path.write_text("100 5\n")
    with pytest.raises(NoVerdict, match="cut short"):
        complete_lines(path, "qemu")
    path.write_text("100 5\nend 9\n")
    assert parse(complete_lines(path, "qemu"), {0x100: "f"}) == ([("f", 5), ("end", 9)], [])


def test_translations_of_one_block_add_up_and_windows_stay_apart() -> None:
    lines = ["10 1", "20 9", "b 4 6 2 3 1", "b 4 6 2 1 1", "10 9", "20 12", "b 4 6 2 1 0", "end 12"]
    _, windows = parse(lines, {0x10: "begin", 0x20: "end"})
    assert windows == [[Block(4, 6, 2, 4, 2)], [Block(4, 6, 2, 1, 0)]]


@pytest.mark.parametrize("board", BOARDS)
def test_the_blocks_of_a_window_are_its_instructions(echo: EchoBuilder, board: str) -> None:
    run = profile(load_board(board), echo(board), spin(1000, 5), ("echo_begin", "echo_end"))
    numbers = [n for _, n in run.events]
    for window, begin, end in zip(run.windows, numbers[0:4:2], numbers[1:4:2], strict=True):
        assert sum(block.executed * block.n_insns for block in window) == end - begin
    loop = max(run.windows[0], key=lambda block: block.executed)
    assert loop.executed >= 999
    assert loop.next_in_memory <= 2  # its branch is taken each time but the last


def test_a_range_is_noted_when_execution_comes_back_to_it(echo: EchoBuilder) -> None:
    run = profile(
        load_board("mps2-an386"), echo("mps2-an386"), spin(5, 5), ("echo_begin", "echo_end"), (), ["echo_spin"]
    )
    assert [name for name, _ in run.events] == [*["echo_begin", "echo_spin", "echo_end"] * 2, "end"]
