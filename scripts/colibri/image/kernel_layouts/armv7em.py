# SPDX-License-Identifier: Apache-2.0
"""Kernel layout 2, `armv7em`: blocks of four rows whose elements share halfwords (docs/FORMAT.md 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.image.kernel_layouts.portable import PortableLayout, align_up, little_endian, pad8
from colibri.quantise import Format, Stored

BLOCK_ROWS = 4
SEGMENT_ELEMS = 512
"""Columns that one 32-bit sum takes: q4 with one multiplier a row has it once for each of these."""

Block = npt.NDArray[Any]
"""[blocks, BLOCK_ROWS, columns of one group]"""


class Armv7emLayout(PortableLayout):
    """Integer matrices in blocks: for each group its elements, then the four rows' scales (q8) or multipliers (q4, whose scales
    end the block). Rows are padded to four, a group's columns to eight."""

    id = 2
    name = "armv7em"

    def row_bytes(self, format_: Format, cols: int) -> int:
        """A quarter of a block: elements, scales and multipliers."""
        if not format_.is_integer:
            return super().row_bytes(format_, cols)
        groups = len(_starts(format_, cols))
        return {"q8": pad8(cols) + 4 * groups, "q4": pad8(cols) // 2 + groups + 4}[format_.kind]

    def stored_rows(self, format_: Format, rows: int) -> int:
        """Whole blocks."""
        return align_up(rows, BLOCK_ROWS) if format_.is_integer else rows

    def scales_bytes(self, format_: Format, rows: int, cols: int) -> int:
        """None for integer formats, whose scales are in the blocks; float formats have none."""
        return 0

    def quant_bytes(self, format_: Format, cols: int) -> int:
        """int16 elements; for q8:G also a scale a group, for q4 four words a group."""
        groups = len(_starts(format_, cols))
        return 2 * pad8(cols) + {"q8": 4 * groups if format_.group else 0, "q4": 16 * groups}[format_.kind]

    def data(self, stored: Stored) -> bytes:
        """The blocks."""
        if not stored.format.is_integer:
            return super().data(stored)
        assert stored.scales is not None
        assert stored.data.min() > -128, f"{stored.name}: -128 is no value of q8 (docs/NUMERICS.md 5)"
        elements, scales = _blocks(stored.data, pad8(stored.cols)), _blocks(stored.scales)
        multipliers = None if stored.multipliers is None else _blocks(stored.multipliers)
        starts = _starts(stored.format, stored.cols)
        parts = []
        for g, group in enumerate(np.split(elements, starts[1:], axis=2)):
            if multipliers is None:
                parts += [_pairs(group), _bytes(scales[:, :, g])]
            else:
                parts += [_digits(group), _bytes(multipliers[:, :, g if stored.format.group else 0])]
        if multipliers is not None:
            parts.append(_bytes(scales[:, :, 0]))
        return np.concatenate(parts, axis=1).tobytes()

    def scales(self, stored: Stored) -> bytes:
        """None: they are in the blocks."""
        return b""


def _starts(format_: Format, cols: int) -> range:
    """The first column of each group, or, of q4 with one multiplier a row, of each segment."""
    return range(0, cols, format_.group or (SEGMENT_ELEMS if format_.kind == "q4" else cols))


def _blocks(rows: npt.NDArray[Any], n_cols: int | None = None) -> Block:
    """[rows, columns] as whole blocks, with zeros behind the last row and column."""
    padded = np.zeros((align_up(rows.shape[0], BLOCK_ROWS), n_cols or rows.shape[1]), dtype=rows.dtype)
    padded[: rows.shape[0], : rows.shape[1]] = rows
    return padded.reshape(-1, BLOCK_ROWS, padded.shape[1])


def _pairs(q: Block) -> npt.NDArray[np.uint8]:
    """A halfword for two rows, 256 * odd + even; a word for two columns of them, for rows 0 and 1, then for 2 and 3."""
    wide = q.astype(np.int16)
    halves = 256 * wide[:, 1::2] + wide[:, 0::2]
    return _bytes(halves.reshape(*halves.shape[:2], -1, 2).transpose(0, 2, 1, 3))


def _digits(q: Block) -> npt.NDArray[np.uint8]:
    """A halfword for the four rows, one hexadecimal digit each, lowest row first; all but the highest are 8 too large."""
    weights = np.array([1, 16, 256, 4096], dtype=np.int32)
    offsets = np.array([8, 8, 8, 0], dtype=np.int32)
    return _bytes((np.einsum("brc,r->bc", q.astype(np.int32), weights) + offsets @ weights).astype(np.int16))


def _bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """[blocks, bytes]"""
    return np.frombuffer(little_endian(values), dtype=np.uint8).reshape(values.shape[0], -1)
