# SPDX-License-Identifier: Apache-2.0
"""MACs of a token by operator, from a plan; and that what is counted adds up where programs are of Linux."""

from __future__ import annotations

import pytest

from cli.command import ROOT, call
from colibri.cli.bench.macs import attention_macs, macs

WEIGHTS = ROOT / "weights"


@pytest.mark.parametrize(
    ("window", "chunk", "at", "seen"), [(0, 0, 9, 10), (4, 0, 2, 3), (4, 0, 9, 4), (0, 4, 3, 4), (0, 4, 4, 1)]
)
def test_attention_sees_what_window_and_chunk_leave(window: int, chunk: int, at: int, seen: int) -> None:
    plan = {"operator_macs": {"q": 7}, "attention_macs": [[100, window, chunk], [10, 0, 0]]}
    assert attention_macs(plan, at) == 100 * seen + 10 * (at + 1)
    assert macs(plan, at) == {"q": 7, "attention": attention_macs(plan, at)}


@pytest.mark.qemu
@pytest.mark.parametrize("board", ["linux-x86_64", pytest.param("linux-riscv64", marks=pytest.mark.slow)])
def test_blocks_operators_and_instructions_of_a_program_of_linux_agree(board: str) -> None:
    """On x86 instructions cross pages. Where the three disagree there is no verdict."""
    (row,) = call("bench", WEIGHTS / "micro-moe", "-b", board, "--json").document["results"]
    assert row["instructions_per_token"]["0"] > 0
