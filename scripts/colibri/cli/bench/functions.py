# SPDX-License-Identifier: Apache-2.0
"""From addresses to the names of functions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from colibri_sim.qemu.symbols import functions

NO_SYMBOL = "(no symbol)"


def function_names(elf: Path) -> Callable[[int], str]:
    """A function that names what an address of `elf` belongs to; NO_SYMBOL where that is nothing with a size."""
    symbols = sorted((start, start + n_bytes, name) for name, start, n_bytes in functions(elf) if n_bytes)
    starts = [start for start, _, _ in symbols]

    def name_of(address: int) -> str:
        i = bisect_right(starts, address) - 1
        return symbols[i][2] if i >= 0 and address < symbols[i][1] else NO_SYMBOL

    return name_of
