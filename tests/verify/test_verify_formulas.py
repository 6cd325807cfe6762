# SPDX-License-Identifier: Apache-2.0
"""Bit-exact: families by their published formula; what is new in them is where the number of experts differs from token to token."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri.axes import Ffn, Router
from image.packs import Packs

from .random_models import random_config, random_model
from .test_verify_families import exact

ALL = ("dynamic_moe", "dynamic_moe_at_most", "hierarchical_moe", "pr_moe", "deepspeed_moe", "glam")
ALWAYS = {("dynamic_moe", "f32"), ("dynamic_moe", "q8"), ("hierarchical_moe", "q8"), ("pr_moe", "f32"), ("pr_moe", "q8")}
"""The others have no stage or rule that these have not."""


def _marked(name: str, quant: str) -> Any:
    return pytest.param(name, quant, marks=() if (name, quant) in ALWAYS else pytest.mark.slow)


@pytest.mark.parametrize(("name", "quant"), [_marked(name, quant) for name in ALL for quant in ("f32", "q8")])
def test_bit_exact(packs: Packs, name: str, quant: str) -> None:
    exact(packs, name, quant, quant, "linux-x86_64")


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("name", "quant", "board", "opt"),
    [
        ("dynamic_moe", "q8", "mps2-an386", "2"),
        *(
            pytest.param(name, quant, board, opt, marks=pytest.mark.slow)
            for board, opt in (("mps2-an386", "s"), ("mps3-an547", "2"), ("virt-riscv32", "2"))
            for name in ALL
            for quant in ("f32", "q8")
        ),
    ],
)
def test_boards_are_bit_exact(packs: Packs, name: str, quant: str, board: str, opt: str) -> None:
    exact(packs, name, quant, "f32", board, opt=opt)
