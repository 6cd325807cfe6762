# SPDX-License-Identifier: Apache-2.0
"""Kernel layout 4, `armv7m`: blocks of rows whose columns are words (docs/FORMAT.md 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.image.kernel_layouts.portable import PortableLayout, align_up, little_endian, pad8
from colibri.quantise import Format, Stored

BLOCK_ROWS = {"q8": 4, "q4": 8}
SEGMENT_ELEMS = 512
"""Columns of q8 that one run of three sums takes."""
Q4_GROUP_ELEMS = 32
"""Columns that share a multiplier as stored; of a larger group it is stored once for each of these."""

Block = npt.NDArray[Any]
"""[blocks, rows of a block, columns]"""


class Armv7mLayout(PortableLayout):
    """Integer matrices in blocks: for each group its columns, a word each, then the rows' scales (q8) or multipliers (q4, whose
    scales end the block). Rows are padded to whole blocks, a group's columns to eight."""

    id = 4
    name = "armv7m"

    def row_bytes(self, format_: Format, cols: int) -> int:
        """A row's share of a block: elements, scales and multipliers."""
        if not format_.is_integer:
            return super().row_bytes(format_, cols)
        groups = len(_starts(format_, cols))
        return {"q8": pad8(cols) + 4 * groups, "q4": pad8(cols) // 2 + groups + 4}[format_.kind]

    def stored_rows(self, format_: Format, rows: int) -> int:
        """Whole blocks."""
        return align_up(rows, BLOCK_ROWS[format_.kind]) if format_.is_integer else rows

    def scales_bytes(self, format_: Format, rows: int, cols: int) -> int:
        """None for integer formats, whose scales are in the blocks; float formats have none."""
        return 0

    def quant_bytes(self, format_: Format, cols: int) -> int:
        """int32 elements, and what the sums begin with: three words a group or segment for q8, four for q4."""
        if format_.kind == "q4":
            return 4 * pad8(cols) + 16 * len(_starts(format_, cols))
        return 4 * pad8(cols) + 12 * len(range(0, cols, format_.group or SEGMENT_ELEMS))

    def data(self, stored: Stored) -> bytes:
        """The blocks."""
        kind = stored.format.kind
        if not stored.format.is_integer:
            return super().data(stored)
        assert stored.scales is not None
        n_rows = BLOCK_ROWS[kind]
        elements, scales = _blocks(stored.data, n_rows, pad8(stored.cols)), _blocks(stored.scales, n_rows)
        multipliers = None if stored.multipliers is None else _blocks(stored.multipliers, n_rows)
        parts = []
        starts = _starts(stored.format, stored.cols)
        for g, (start, group) in enumerate(zip(starts, np.split(elements, starts[1:], axis=2), strict=True)):
            parts.append(_words(group, 32 // n_rows))
            if multipliers is None:
                parts.append(_bytes(scales[:, :, g]))
            else:
                parts.append(_bytes(multipliers[:, :, start // stored.format.group if stored.format.group else 0]))
        if multipliers is not None:
            parts.append(_bytes(scales[:, :, 0]))
        return np.concatenate(parts, axis=1).tobytes()

    def scales(self, stored: Stored) -> bytes:
        """None: they are in the blocks."""
        return b""


def _starts(format_: Format, cols: int) -> range:
    """The first column of each group as it is stored."""
    return range(0, cols, Q4_GROUP_ELEMS if format_.kind == "q4" else format_.group or cols)


def _blocks(rows: npt.NDArray[Any], n_rows: int, n_cols: int | None = None) -> Block:
    """[rows, columns] as whole blocks of n_rows, with zeros behind the last row and column."""
    padded = np.zeros((align_up(rows.shape[0], n_rows), n_cols or rows.shape[1]), dtype=rows.dtype)
    padded[: rows.shape[0], : rows.shape[1]] = rows
    return padded.reshape(-1, n_rows, padded.shape[1])


def _words(q: Block, bits: int) -> npt.NDArray[np.uint8]:
    """A word for a column, lowest row in the lowest `bits` bits, each element with 2**(bits - 1) added."""
    digits = q.astype(np.int64) + (1 << (bits - 1))
    weights = np.left_shift(np.int64(1), bits * np.arange(q.shape[1], dtype=np.int64))
    return _bytes(np.einsum("brc,r->bc", digits, weights).astype(np.uint32))


def _bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """[blocks, bytes]"""
    return np.frombuffer(little_endian(values), dtype=np.uint8).reshape(values.shape[0], -1)
