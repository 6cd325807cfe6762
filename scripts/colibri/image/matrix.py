# SPDX-License-Identifier: Apache-2.0
"""The descriptor of a matrix as the kernels read it, and its size (docs/FORMAT.md 3)."""

from __future__ import annotations

from dataclasses import dataclass

from colibri.image.format import LAYOUT_PORTABLE
from colibri.quantise import Format

ALIGN_BYTES = 16
"""Every block, and the scales inside one, start at a multiple of this."""

DTYPE_IDS = {"f32": 0, "bf16": 1, "f16": 2, "q8": 3, "q4": 4}
_ELEMENT_BITS = {"f32": 32, "bf16": 16, "f16": 16, "q8": 8, "q4": 4}


def align_up(value: int, alignment: int) -> int:
    """The next multiple of `alignment` at or above `value`."""
    return -(-value // alignment) * alignment


def pad8(n_elems: int) -> int:
    """Elements of a row or vector once padded for the eight lanes of dot8."""
    return align_up(n_elems, 8)


@dataclass(frozen=True)
class Matrix:
    """(rows, cols, dtype, group, layout): what a kernel needs to know about a matrix but its address."""

    rows: int
    cols: int
    format: Format
    layout: int = LAYOUT_PORTABLE

    @property
    def row_bytes(self) -> int:
        """Bytes of one padded row of elements."""
        return pad8(self.cols) * _ELEMENT_BITS[self.format.kind] // 8

    @property
    def scales_offset(self) -> int:
        """Where the scales start, from the start of the matrix."""
        return align_up(self.rows * self.row_bytes, ALIGN_BYTES)

    @property
    def scales_bytes(self) -> int:
        """Bytes of scales and multipliers."""
        groups = self.format.groups(self.cols)
        if self.format.kind == "q8":
            return 4 * self.rows * groups
        return self.rows * (4 + groups) if self.format.kind == "q4" else 0

    @property
    def bytes(self) -> int:
        """Bytes of the whole block."""
        return self.scales_offset + self.scales_bytes

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one product with a vector."""
        return self.rows * self.cols

    def stored_bytes(self) -> int:
        """Bytes that carry information: without row padding and alignment."""
        return self.rows * (self.cols * _ELEMENT_BITS[self.format.kind]) // 8 + self.scales_bytes
