# SPDX-License-Identifier: Apache-2.0
"""A stored matrix as the bytes its kernels read (docs/FORMAT.md 3). Layout 1, `portable`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.image.matrix import Matrix, pad8
from colibri.quantise import Stored


def matrix_bytes(stored: Stored, matrix: Matrix) -> bytes:
    """Data, zero-padded rows, alignment, then scales (and multipliers): exactly `matrix.bytes` bytes."""
    padded = np.zeros((stored.rows, pad8(stored.cols)), dtype=stored.data.dtype)
    padded[:, : stored.cols] = stored.data
    if stored.format.kind == "q4":
        padded = _nibbles(padded)
    raw = _little_endian(padded)
    out = raw + bytes(matrix.scales_offset - len(raw))
    for part in (stored.scales, stored.multipliers):
        if part is not None:
            out += _little_endian(part)
    assert len(out) == matrix.bytes, (stored.name, len(out), matrix.bytes)
    return out


def _nibbles(q: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Element 2i in the low nibble of byte i, 2i + 1 in the high one, two's complement."""
    low, high = np.ascontiguousarray(q[:, 0::2]).view(np.uint8), np.ascontiguousarray(q[:, 1::2]).view(np.uint8)
    return ((low & 0x0F) | ((high & 0x0F) << 4)).astype(np.uint8)


def _little_endian(array: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).tobytes()
