# SPDX-License-Identifier: Apache-2.0
"""A model that fits the smallest board has the golden model's bits on every Cortex-M board, with both compilers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from colibri.boards import list_boards, load_board
from colibri.folder import read_folder

pytestmark = pytest.mark.qemu

ROOT = Path(__file__).resolve().parents[2]
MICRO = ROOT / "weights" / "micro-moe"
LIKE_M4 = ("mps2-an386", "mps2-an500", "mps2-an505")
CORTEX_M = tuple(name for name in list_boards() if load_board(name).arch == "arm-m")


def colibri(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "colibri.cli.main", *map(str, arguments), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout))


@pytest.mark.parametrize(
    "board", [pytest.param(board, marks=pytest.mark.slow if board in LIKE_M4 else ()) for board in CORTEX_M]
)
def test_micro_moe_is_bit_exact(board: str) -> None:
    results = colibri("verify", MICRO, "-b", board, "--toolchain", "all")["results"]
    assert [(r["toolchain"], r["status"]) for r in results] == [("gcc", "exact"), ("llvm", "exact")]


@pytest.mark.parametrize(
    ("board", "opt"),
    [
        ("microbit", "0"),
        ("mps2-an385", "s"),
        *(
            pytest.param(board, opt, marks=pytest.mark.slow)
            for board, opt in (("microbit", "3"), ("microbit", "s"), ("mps2-an385", "0"), ("mps2-an385", "3"))
        ),
    ],
)
def test_without_an_fpu_every_level_is_bit_exact(board: str, opt: str) -> None:
    results = colibri("verify", MICRO, "-b", board, "--toolchain", "all", "--opt", opt)["results"]
    assert [(r["toolchain"], r["status"]) for r in results] == [("gcc", "exact"), ("llvm", "exact")]


@pytest.mark.parametrize("quant", ["f32", "bf16", "q4"])
def test_other_formats_are_bit_exact_on_the_smallest_core(quant: str) -> None:
    oracle = ROOT / "tests" / "oracles" / "data" / "mixtral_tied"
    (result,) = colibri("verify", oracle, "-b", "microbit", "-q", quant, "--max-seq", 32)["results"]
    assert result["status"] == "exact"


def test_code_and_weights_share_the_flash(tmp_path: Path) -> None:
    colibri("pack", MICRO, "-b", "microbit", "-o", tmp_path / "micro")
    plan = read_folder(tmp_path / "micro").manifest["plan"]
    regions = {r["name"]: r for r in plan["regions"]}
    assert (
        regions["code"]["origin"] + regions["code"]["length"] == regions["flash"]["origin"] == plan["weights_address"]
    )
    assert regions["flash"]["origin"] + regions["flash"]["length"] == 256 * 1024
    assert regions["ram"]["used"] <= regions["ram"]["length"] == 16 * 1024
