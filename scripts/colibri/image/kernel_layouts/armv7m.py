# SPDX-License-Identifier: Apache-2.0
"""Kernel layout 4, `armv7m`: blocks of rows whose columns are words (docs/FORMAT.md 3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colibri.image.kernel_layouts.blocked import Block, BlockedLayout, as_bytes
from colibri.image.kernel_layouts.portable import pad8
from colibri.quantise import Format

SEGMENT_ELEMS = 512
"""Columns of q8 that one run of three sums takes."""
Q4_GROUP_ELEMS = 32
"""Columns that share a multiplier as stored; of a larger group it is stored once for each of these."""


class Armv7mLayout(BlockedLayout):
    """A word for a column: four rows of q8, eight of q4."""

    id = 4
    name = "armv7m"
    block_rows = {"q8": 4, "q4": 8}  # noqa: RUF012 (a constant of the class)

    def starts(self, format_: Format, cols: int) -> range:
        """The first column of each group as it is stored."""
        return range(0, cols, Q4_GROUP_ELEMS if format_.kind == "q4" else format_.group or cols)

    def quant_bytes(self, format_: Format, cols: int) -> int:
        """int32 elements, and what the sums begin with: three words a group or segment for q8, four for q4."""
        if format_.kind == "q4":
            return 4 * pad8(cols) + 16 * len(self.starts(format_, cols))
        return 4 * pad8(cols) + 12 * len(range(0, cols, format_.group or SEGMENT_ELEMS))

    def elements(self, kind: str, group: Block) -> npt.NDArray[np.uint8]:
        """A word for a column, lowest row in the lowest bits, each element with half its range added."""
        bits = 32 // group.shape[1]
        digits = group.astype(np.int64) + (1 << (bits - 1))
        weights = np.left_shift(np.int64(1), bits * np.arange(group.shape[1], dtype=np.int64))
        return as_bytes(np.einsum("brc,r->bc", digits, weights).astype(np.uint32))
