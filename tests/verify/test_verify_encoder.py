# SPDX-License-Identifier: Apache-2.0
"""An encoder and its decoder, bit for bit; faults found at their token of the source; the calls that a source adds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri.axes import Attention
from colibri.boards import load_board
from colibri.cli import targets
from colibri.cli.workflow import Checkpoint, board_of, golden_of, pack, read_checkpoint
from colibri.folder import Folder, read_folder
from colibri_sim.golden import GoldenModel, SourceRecorder
from colibri_sim.golden.fma import F32Array
from colibri_sim.golden.operators import I32Array
from colibri_sim.qemu.frames import END, Status, encode, message
from colibri_sim.vectors import IN_SOURCE, Prompt
from golden.encoder_decoder import DATA
from image.packs import Packs, settings

from .mutants import method, patched_build, verdict

IDS = (0, 5, 2, 7, 3)
SOURCE = (9, 3, 3, 3, 3, 3, 71, 4, 12, 95, 0)


@cache
def checkpoint(name: str) -> Checkpoint:
    return read_checkpoint(DATA / name)


def packed(packs: Packs, name: str, quant: str, kv: str, board: str = "linux-x86_64") -> Folder:
    out = packs.new()
    chosen = settings(quant, kv=kv, max_seq=9, max_source=17)
    pack(
        checkpoint(name),
        load_board(board),
        chosen,
        out,
        (Prompt(IDS, source=SOURCE), Prompt(IDS[:1], source=SOURCE[:1])),
    )
    return read_folder(out)


def exact(packs: Packs, name: str, quant: str, kv: str, board: str = "linux-x86_64") -> None:
    folder = packed(packs, name, quant, kv, board)
    found = verdict(folder, packs.built(folder) / "firmware.elf")
    assert found.first_difference is None, str(found.first_difference)
    assert found.positions == len(IDS) + 1


@pytest.mark.parametrize(("name", "quant", "kv"), [("switch_full", "f32", "f32"), ("switch", "q8", "q8")])
def test_it_is_bit_exact(packs: Packs, name: str, quant: str, kv: str) -> None:
    exact(packs, name, quant, kv)


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("name", "quant", "kv", "board"),
    [
        ("switch_full", "q8", "f32", "mps2-an386"),
        ("switch", "f32", "f16", "mps3-an547"),
        pytest.param("switch_all", "q8", "q8", "virt-riscv32", marks=pytest.mark.slow),
    ],
)
def test_boards_are_bit_exact(packs: Packs, name: str, quant: str, kv: str, board: str) -> None:
    exact(packs, name, quant, kv, board)


def one_more(self: GoldenModel, capacity: int, ids: I32Array, weights: F32Array) -> F32Array:
    return GoldenModel.limit_to_capacity(self, capacity + 1, ids, weights)


def first_head(self: GoldenModel, a: Attention, head: int, positions: Any, z: F32Array) -> F32Array:
    return GoldenModel.bias_scores(self, a, 0, positions, z)


FAULTS = {
    "engine/capacity.c": (
        "colibri_mask_below(before, capacity)",
        "colibri_mask_below(before, capacity + 1)",
        {"limit_to_capacity": one_more},
        "expert_weights",
    ),
    "engine/attention.c": (
        "(size_t)head * COLIBRI",
        "(size_t)(head & 0u) * COLIBRI",
        {"bias_scores": first_head},
        "attn",
    ),
}


@pytest.mark.parametrize("file", ["engine/capacity.c", pytest.param("engine/attention.c", marks=pytest.mark.slow)])
def test_a_fault_is_found_at_its_token(packs: Packs, tmp_path: Path, file: str) -> None:
    old, new, mutant, tensor = FAULTS[file]
    folder = packs.private(packed(packs, "switch_full", "q8", "f32"))
    found = verdict(folder, patched_build(folder, {file: (old, new)}, tmp_path)).first_difference
    assert found is not None
    right, wrong = (SourceRecorder(golden_of(folder).config, keep=True) for _ in range(2))
    golden_of(folder).encode(SOURCE, trace=right)
    method(**mutant)(golden_of(folder)).encode(SOURCE, trace=wrong)
    name = next(n for n, a, b in zip(right.names, right.crcs, wrong.crcs, strict=True) if a != b)
    pairs = enumerate(zip(right.values[name], wrong.values[name], strict=True))
    token, (want, got) = next((t, ab) for t, ab in pairs if not np.array_equal(*ab))
    at = int(np.flatnonzero(want != got)[0])
    bits = tuple(f"{int(x.view(np.uint32)[at]):#010x}" for x in (want, got))
    assert (found.position, found.token, found.layer, found.tensor) == (IN_SOURCE, token, name.layer, tensor)
    assert (name.tensor, found.element, (found.expected_bits, found.got_bits)) == (tensor, at, bits)
    assert f"source token {token}" in str(found)


def test_the_calls_of_an_encoder(packs: Packs, tmp_path: Path) -> None:
    folder = packs.private(packed(packs, "switch_full", "q8", "q8"))
    elf = patched_build(folder, {}, tmp_path, app=Path(__file__).with_name("encoder.c"))
    frames = targets.frames(folder, board_of(folder), elf, encode("V") + END, targets.timeout_for(folder, 40, None))
    assert [message(frame) for frame in frames] == [Status(0, None)], "the code is a line of encoder.c"
