# SPDX-License-Identifier: Apache-2.0
"""The descriptor of a matrix as the kernels read it, its size, and its bytes (docs/FORMAT.md 3)."""

from __future__ import annotations

from dataclasses import dataclass

from colibri.image.kernel_layouts import ALIGN_BYTES, ELEMENT_BITS, PORTABLE, KernelLayout, align_up
from colibri.quantise import Format, Stored

DTYPE_IDS = {"f32": 0, "bf16": 1, "f16": 2, "q8": 3, "q4": 4}


@dataclass(frozen=True)
class Matrix:
    """(rows, cols, format, layout): what a kernel needs to know about a matrix but its address."""

    rows: int
    cols: int
    format: Format
    layout: KernelLayout = PORTABLE

    @property
    def row_bytes(self) -> int:
        """Bytes of one padded row of elements, or its share where rows are interleaved."""
        return self.layout.row_bytes(self.format, self.cols)

    @property
    def data_bytes(self) -> int:
        """Bytes of the elements, padding included."""
        return self.layout.data_bytes(self.format, self.rows, self.cols)

    @property
    def scales_offset(self) -> int:
        """Where the scales start, from the start of the matrix."""
        return align_up(self.data_bytes, ALIGN_BYTES)

    @property
    def scales_bytes(self) -> int:
        """Bytes of scales and multipliers, padding included."""
        return self.layout.scales_bytes(self.format, self.rows, self.cols)

    @property
    def bytes(self) -> int:
        """Bytes of the whole block."""
        return self.scales_offset + self.scales_bytes

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one product with a vector."""
        return self.rows * self.cols

    def stored_bytes(self) -> int:
        """Bytes that carry information: without padding and alignment."""
        scales = PORTABLE.scales_bytes(self.format, self.rows, self.cols)
        return self.rows * self.cols * ELEMENT_BITS[self.format.kind] // 8 + scales


def matrix_bytes(stored: Stored, matrix: Matrix) -> bytes:
    """Data, alignment, then scales (and multipliers): exactly `matrix.bytes` bytes."""
    data, scales = matrix.layout.data(stored), matrix.layout.scales(stored)
    assert len(data) == matrix.data_bytes, (stored.name, len(data), matrix.data_bytes)
    assert len(scales) == matrix.scales_bytes, (stored.name, len(scales), matrix.scales_bytes)
    return data + bytes(matrix.scales_offset - len(data)) + scales
