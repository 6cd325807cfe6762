# SPDX-License-Identifier: Apache-2.0
"""What the layouts of cores without vector registers share: integer matrices in blocks of rows that share words."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.image.kernel_layouts.portable import PortableLayout, align_up, little_endian, pad8
from colibri.quantise import Format, Stored

Block = npt.NDArray[Any]
"""[blocks, rows of a block, columns]"""


class BlockedLayout(PortableLayout):
    """For each group of columns its elements, then the rows' scales (q8) or multipliers (q4, whose scales end the block). Rows
    are padded to whole blocks, a group's columns to eight.
    """

    block_rows: dict[str, int]
    """By kind of format."""

    def starts(self, format_: Format, cols: int) -> range:
        """The first column of each group as it is stored."""
        raise NotImplementedError

    def elements(self, kind: str, group: Block) -> npt.NDArray[np.uint8]:
        """The elements of one group of columns: [blocks, bytes]."""
        raise NotImplementedError

    def row_bytes(self, format_: Format, cols: int) -> int:
        """A row's share of a block: elements, scales and multipliers."""
        if not format_.is_integer:
            return super().row_bytes(format_, cols)
        groups = len(self.starts(format_, cols))
        return {"q8": pad8(cols) + 4 * groups, "q4": pad8(cols) // 2 + groups + 4}[format_.kind]

    def stored_rows(self, format_: Format, rows: int) -> int:
        """Whole blocks."""
        return align_up(rows, self.block_rows[format_.kind]) if format_.is_integer else rows

    def scales_bytes(self, format_: Format, rows: int, cols: int) -> int:
        """None for integer formats, whose scales are in the blocks; float formats have none."""
        return 0

    def data(self, stored: Stored) -> bytes:
        """The blocks."""
        format_ = stored.format
        if not format_.is_integer:
            return super().data(stored)
        assert stored.scales is not None
        elements, scales = self._blocks(stored, stored.data, pad8(stored.cols)), self._blocks(stored, stored.scales)
        multipliers = None if stored.multipliers is None else self._blocks(stored, stored.multipliers)
        starts = self.starts(format_, stored.cols)
        parts = []
        for g, (start, group) in enumerate(zip(starts, np.split(elements, starts[1:], axis=2), strict=True)):
            parts.append(self.elements(format_.kind, group))
            if multipliers is None:
                parts.append(as_bytes(scales[:, :, g]))
            else:
                parts.append(as_bytes(multipliers[:, :, start // format_.group if format_.group else 0]))
        if multipliers is not None:
            parts.append(as_bytes(scales[:, :, 0]))
        return np.concatenate(parts, axis=1).tobytes()

    def scales(self, stored: Stored) -> bytes:
        """None: they are in the blocks."""
        return b""

    def _blocks(self, stored: Stored, rows: npt.NDArray[Any], n_cols: int | None = None) -> Block:
        """[rows, columns] as whole blocks, with zeros behind the last row and column."""
        n_rows = self.stored_rows(stored.format, stored.rows)
        padded = np.zeros((n_rows, n_cols or rows.shape[1]), dtype=rows.dtype)
        padded[: rows.shape[0], : rows.shape[1]] = rows
        return padded.reshape(-1, self.block_rows[stored.format.kind], padded.shape[1])


def as_bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """[blocks, bytes]"""
    return np.frombuffer(little_endian(values), dtype=np.uint8).reshape(values.shape[0], -1)
