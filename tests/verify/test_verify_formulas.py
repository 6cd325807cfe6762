# SPDX-License-Identifier: Apache-2.0
"""Bit-exact: families by their published formula. GLaM and DeepSpeed-MoE have no stage or rule that others do not have."""

from __future__ import annotations

import pytest

from image.packs import Packs
from sampled import chosen

from .test_verify_families import FORMULAS, exact

ALWAYS = {
    ("dynamic_moe", "f32"),
    ("dynamic_moe", "q8"),
    ("hierarchical_moe", "q8"),
    ("pr_moe", "q8"),
}
BOARDS = {"mps2-an386": "s", "mps3-an547": "2", "virt-riscv32": "2"}
BOTH = [(name, quant) for name in sorted(FORMULAS) for quant in ("f32", "q8")]


@pytest.mark.parametrize(("name", "quant"), chosen(BOTH, ALWAYS))
def test_bit_exact(packs: Packs, name: str, quant: str) -> None:
    exact(packs, name, quant, quant, "linux-x86_64")


@pytest.mark.qemu
def test_a_board_is_bit_exact(packs: Packs) -> None:
    exact(packs, "dynamic_moe", "q8", "f32", "mps2-an386", opt="2")


@pytest.mark.qemu
@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize(("name", "quant"), BOTH)
def test_boards_are_bit_exact(packs: Packs, name: str, quant: str, board: str) -> None:
    exact(packs, name, quant, "f32", board, opt=BOARDS[board])
