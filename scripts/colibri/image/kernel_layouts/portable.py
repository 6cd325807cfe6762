# SPDX-License-Identifier: Apache-2.0
"""Kernel layout 1, `portable`, and what every kernel layout answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.quantise import Format, Stored

ALIGN_BYTES = 16
"""Every block, and the scales inside one, start at a multiple of this."""

ELEMENT_BITS = {"f32": 32, "bf16": 16, "f16": 16, "q8": 8, "q4": 4}


def align_up(value: int, alignment: int) -> int:
    """The next multiple of `alignment` at or above `value`."""
    return -(-value // alignment) * alignment


def pad8(n_elems: int) -> int:
    """Elements of a row or vector once padded for the eight lanes of dot8."""
    return align_up(n_elems, 8)


class PortableLayout:
    """Rows in order, each padded to 8 elements; then the scales (docs/FORMAT.md 3).

    Another kernel set's layout derives from this one and says where it differs, for the integer formats alone: float matrices
    are the same in every layout. A matrix is data (`data_bytes`), zeros up to ALIGN_BYTES, scales (`scales_bytes`).
    """

    id = 1
    """In the image's header and in model_config.h; never changes its meaning and is never reused."""

    name = "portable"
    """The kernel set that reads it: the folder in firmware/kernels."""

    def row_bytes(self, format_: Format, cols: int) -> int:
        """Bytes of one padded row, or its share where rows are interleaved."""
        return pad8(cols) * ELEMENT_BITS[format_.kind] // 8

    def stored_rows(self, format_: Format, rows: int) -> int:
        """Rows once padded."""
        return rows

    def data_bytes(self, format_: Format, rows: int, cols: int) -> int:
        """Bytes of a matrix's elements."""
        return self.stored_rows(format_, rows) * self.row_bytes(format_, cols)

    def scales_bytes(self, format_: Format, rows: int, cols: int) -> int:
        """Bytes of a matrix's scales and multipliers."""
        rows, groups = self.stored_rows(format_, rows), format_.groups(cols)
        return {"q8": 4 * rows * groups, "q4": rows * (4 + groups)}.get(format_.kind, 0)

    def quant_bytes(self, format_: Format, cols: int) -> int:
        """Bytes of a vector of `cols` elements once quantised for a matrix of an integer format: a multiple of 4."""
        return pad8(cols)

    def data(self, stored: Stored) -> bytes:
        """The elements of a matrix: data_bytes bytes."""
        padded = np.zeros((stored.rows, pad8(stored.cols)), dtype=stored.data.dtype)
        padded[:, : stored.cols] = stored.data
        return little_endian(_nibbles(padded) if stored.format.kind == "q4" else padded)

    def scales(self, stored: Stored) -> bytes:
        """Its scales and multipliers: scales_bytes bytes."""
        return b"".join(little_endian(part) for part in (stored.scales, stored.multipliers) if part is not None)


def little_endian(array: npt.NDArray[Any]) -> bytes:
    """The elements in order, as they lie in the image."""
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).tobytes()


def _nibbles(q: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Element 2i in the low nibble of byte i, 2i + 1 in the high one, two's complement."""
    low, high = np.ascontiguousarray(q[:, 0::2]).view(np.uint8), np.ascontiguousarray(q[:, 1::2]).view(np.uint8)
    return ((low & 0x0F) | ((high & 0x0F) << 4)).astype(np.uint8)
