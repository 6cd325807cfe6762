# SPDX-License-Identifier: Apache-2.0
"""Boards: one TOML each in linker/boards/, checked here before anything else believes it."""

from __future__ import annotations

from colibri.boards.description import Alignment, Board, Flash, Qemu, Region, Timing, Toolchain
from colibri.boards.kernel_sets import KERNEL_SETS
from colibri.boards.linker import linker_script, mpu_regions, page_tables
from colibri.boards.load import list_boards, load_board

__all__ = [
    "KERNEL_SETS",
    "Alignment",
    "Board",
    "Flash",
    "Qemu",
    "Region",
    "Timing",
    "Toolchain",
    "linker_script",
    "list_boards",
    "load_board",
    "mpu_regions",
    "page_tables",
]
