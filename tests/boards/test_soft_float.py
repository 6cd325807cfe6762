# SPDX-License-Identifier: Apache-2.0
"""What the integer fma costs on cores without an FPU. Its bits are tested in tests/engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from echo_build import build_echo

from colibri.boards import load_board
from colibri.data import data_path
from colibri_sim.qemu.counter import count
from colibri_sim.qemu.frames import END, encode

pytestmark = pytest.mark.qemu

PRELUDE = """\
#include <stdint.h>
#define COLIBRI_CONFIG_H /* no model: only these two are asked for */
#define COLIBRI_SOFT_FMA 0
#include "{firmware}/kernels/portable/fma.c"
"""
MARKERS = ["cost_begin", "cost_end", "frame_begin", "frame_end"]


@pytest.mark.parametrize("toolchain", ["gcc", "llvm"])
@pytest.mark.parametrize(("board", "most"), [("mps2-an385", 100), ("microbit", 200)])
def test_an_fma_is_short(tmp_path: Path, board: str, toolchain: str, most: int) -> None:
    extra = tmp_path / "cost.c"
    extra.write_text(
        PRELUDE.format(firmware=data_path("firmware")) + Path(__file__).with_name("fma_cost.c").read_text()
    )
    elf = build_echo(load_board(board), toolchain, tmp_path, extra=extra)
    counts = [n for _, n in count(load_board(board), elf, encode("k") + END, MARKERS)]
    assert 30 < (counts[1] - counts[0] - (counts[3] - counts[2])) / 1000 < most
