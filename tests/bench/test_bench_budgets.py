# SPDX-License-Identifier: Apache-2.0
"""Instructions per token and per kernel are those of linker/instructions.toml, within 2 %: a sample of it, every time."""

from __future__ import annotations

import pytest

from bench import text_cost
from bench.budgets import FILE, POSITIONS, Table, committed, differences, kernels, text, text_of, tokens
from colibri.boards import list_boards
from colibri.layout.text import SAMPLE_CHARACTERS
from sampled import chosen

SAMPLE = (
    ("mps2-an385", "gcc", "q8"),
    ("mps2-an386", "gcc", "q8"),
    ("mps3-an547", "gcc", "q8"),
    ("mps2-an505", "gcc", "q8"),
    ("mps2-an386", "llvm", "q8"),
    ("mps3-an547", "llvm", "q8"),
    ("mps2-an386", "gcc", "q4"),
    ("virt-riscv32f", "llvm", "q8"),
    ("virt-aarch64", "gcc", "q8"),
    ("mps3-an547", "gcc", "q4"),
    ("microbit", "gcc", "q8"),
)


def against_the_file(measured: Table) -> list[str]:
    assert len(measured) == 1
    ((name, figures),) = measured.items()
    table = committed()
    if name not in table and any(other.split()[::2] == name.split()[::2] for other in table):
        pytest.skip(f"no figures for {name.split()[1]}: make bench-budgets measures them")
    return differences(figures, table.get(name, {}))


@pytest.mark.qemu
@pytest.mark.parametrize(("board", "toolchain", "quant"), chosen(SAMPLE, SAMPLE[:3]))
def test_a_token_costs_what_it_did(board: str, toolchain: str, quant: str) -> None:
    assert against_the_file(tokens(board, toolchain, quant)) == []


@pytest.mark.qemu
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386", "mps3-an547"])
def test_a_kernel_costs_what_it_did(board: str) -> None:
    assert against_the_file(kernels(board, "gcc")) == []


@pytest.mark.qemu
def test_a_character_costs_what_it_did() -> None:
    measured = text("mps2-an386", "gcc", ["characters"])
    ((name, figures),) = measured.items()
    wanted = committed()[name] if name in committed() else pytest.skip(f"no figures for {name}: make bench-budgets")
    assert differences(figures, {"characters": wanted["characters"]}) == []


def test_two_per_cent_either_way_are_too_many() -> None:
    assert differences({"0": 1020}, {"0": 1000}) == differences({"0": 980}, {"0": 1000}) == []
    (slower,) = differences({"0": 1021}, {"0": 1000})
    assert "+2.1 %" in slower
    assert "slower" in slower
    (faster,) = differences({"0": 979}, {"0": 1000})
    assert "make bench-budgets" in faster
    assert [line.split(";")[0] for line in differences({"0": 1}, {"31": 1})] == [
        "0: not in the file",
        "31: measured no more",
    ]


def test_the_file_is_what_the_command_writes() -> None:
    table = committed()
    assert FILE.read_text() == text_of(table)
    assert len(text_cost.SAMPLE) == SAMPLE_CHARACTERS
    for name, figures in table.items():
        board, compiler, what = name.split()
        assert board in list_boards()
        assert compiler.partition("-")[0] in ("gcc", "llvm")
        assert what == "kernels" or set(figures) <= set(text_cost.ALGORITHMS if what == "text" else POSITIONS)
    assert {board for board, _, _ in SAMPLE} <= {name.split()[0] for name in table}
