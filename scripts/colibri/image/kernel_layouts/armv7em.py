# SPDX-License-Identifier: Apache-2.0
"""Kernel layout 2, `armv7em`: blocks of four rows whose elements share halfwords (docs/FORMAT.md 3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colibri.image.kernel_layouts.blocked import Block, BlockedLayout, as_bytes
from colibri.image.kernel_layouts.portable import pad8
from colibri.quantise import Format, Stored

SEGMENT_ELEMS = 512
"""Columns that one 32-bit sum takes: q4 with one multiplier a row has it once for each of these."""


class Armv7emLayout(BlockedLayout):
    """Two rows of q8, or the four of q4, in a halfword."""

    id = 2
    name = "armv7em"
    block_rows = {"q8": 4, "q4": 4}  # noqa: RUF012 (a constant of the class)

    def starts(self, format_: Format, cols: int) -> range:
        """The first column of each group, or, of q4 with one multiplier a row, of each segment."""
        return range(0, cols, format_.group or (SEGMENT_ELEMS if format_.kind == "q4" else cols))

    def quant_bytes(self, format_: Format, cols: int) -> int:
        """int16 elements; for q8:G also a scale a group, for q4 four words a group."""
        groups = len(self.starts(format_, cols))
        return 2 * pad8(cols) + {"q8": 4 * groups if format_.group else 0, "q4": 16 * groups}[format_.kind]

    def data(self, stored: Stored) -> bytes:
        """The blocks; two rows of -128 would not fit a halfword."""
        assert not stored.format.is_integer or stored.data.min() > -128, (
            f"{stored.name}: -128 is no value of q8 (docs/NUMERICS.md 5)"
        )
        return super().data(stored)

    def elements(self, kind: str, group: Block) -> npt.NDArray[np.uint8]:
        """[blocks, bytes]"""
        return _digits(group) if kind == "q4" else _pairs(group)


def _pairs(q: Block) -> npt.NDArray[np.uint8]:
    """A halfword for two rows, 256 * odd + even; a word for two columns of them, for rows 0 and 1, then for 2 and 3."""
    wide = q.astype(np.int16)
    halves = 256 * wide[:, 1::2] + wide[:, 0::2]
    return as_bytes(halves.reshape(*halves.shape[:2], -1, 2).transpose(0, 2, 1, 3))


def _digits(q: Block) -> npt.NDArray[np.uint8]:
    """A halfword for the four rows, one hexadecimal digit each, lowest row first; all but the highest are 8 too large."""
    weights = np.array([1, 16, 256, 4096], dtype=np.int32)
    offsets = np.array([8, 8, 8, 0], dtype=np.int32)
    return as_bytes((np.einsum("brc,r->bc", q.astype(np.int32), weights) + offsets @ weights).astype(np.int16))
