# SPDX-License-Identifier: Apache-2.0
"""Bit-exact: families by their published formula. GLaM and DeepSpeed-MoE have no stage or rule that others do not have."""

from __future__ import annotations

import pytest

from image.packs import Packs

from .test_verify_families import exact


@pytest.mark.parametrize(
    ("name", "quant"),
    [("dynamic_moe", "f32"), ("dynamic_moe", "q8"), ("hierarchical_moe", "q8"), ("pr_moe", "f32"), ("pr_moe", "q8")],
)
def test_bit_exact(packs: Packs, name: str, quant: str) -> None:
    exact(packs, name, quant, quant, "linux-x86_64")


@pytest.mark.qemu
def test_a_board_is_bit_exact(packs: Packs) -> None:
    exact(packs, "dynamic_moe", "q8", "f32", "mps2-an386", opt="2")
