# SPDX-License-Identifier: Apache-2.0
"""Bytes of a source tensor to float32, with the range every weight must keep (docs/NUMERICS)."""

from __future__ import annotations

import numpy as np

from colibri.errors import CheckpointError
from colibri.importers.text import quoted
from colibri.model import F32Array

DTYPES = {"F32": "f32", "F16": "f16", "BF16": "bf16"}  # the container's spelling, and colibri.model's

BYTES_OF_DTYPE = {"F32": 4, "F16": 2, "BF16": 2}

_LIMIT_BITS = 0x58800000  # float32 2**50; infinities and NaN have larger bits


def _float8_values() -> F32Array:
    """The 256 values of F8_E4M3: 1-4-3, bias 7, no infinities, all ones is NaN."""
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    magnitude = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    magnitude = np.where(codes & 127 == 127, np.nan, magnitude)
    return np.where(codes & 128, -magnitude, magnitude).astype(np.float32)


_FLOAT8 = _float8_values()
_FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)


def to_float32(data: bytes, dtype: str, shape: tuple[int, ...]) -> F32Array:
    """Convert little-endian values exactly; a new array."""
    if dtype == "BF16":
        # bfloat16 is the upper half of a float32.
        bits = np.frombuffer(data, "<u2").astype(np.uint32) << np.uint32(16)
        return bits.view(np.float32).reshape(shape)
    if dtype == "F16":
        with np.errstate(all="ignore"):  # signalling NaN, refused below
            return np.frombuffer(data, "<f2").astype(np.float32).reshape(shape)
    if dtype == "F8_E4M3":
        return _FLOAT8[np.frombuffer(data, np.uint8)].reshape(shape)
    return np.frombuffer(data, "<f4").astype(np.float32).reshape(shape)


def scale_blocks(values: F32Array, scales: F32Array, block: int) -> F32Array:
    """Multiply each `block` x `block` square of a matrix by its scale, rounding each product once; the last may be cut."""
    rows, cols = (np.arange(n) // block for n in values.shape)
    with np.errstate(all="ignore"):  # a product beyond float32 is refused below
        return np.asarray(values * scales[np.ix_(rows, cols)], dtype=np.float32)


def mxfp4_to_float32(codes: bytes, exponents: bytes, shape: tuple[int, ...]) -> F32Array:
    """Convert 4-bit floats exactly: ``value(nibble) * 2**(exponent - 127)``, one exponent for 32; the low nibble first."""
    packed = np.frombuffer(codes, np.uint8).reshape(-1, 16)
    nibbles = np.stack((packed & 15, packed >> 4), axis=-1).reshape(-1, 32)
    powers = np.frombuffer(exponents, np.uint8).astype(np.int32) - 127
    with np.errstate(all="ignore"):
        return np.ldexp(_FLOAT4[nibbles], powers[:, None]).astype(np.float32).reshape(shape)


def check_range(values: F32Array, name: str, where: str) -> None:
    """Refuse NaN, infinities and |w| >= 2**50; the CheckpointError names the first such element in row-major order."""
    magnitudes = values.view(np.uint32) & np.uint32(0x7FFFFFFF)
    if int(magnitudes.max()) < _LIMIT_BITS:
        return
    first = np.unravel_index(int((magnitudes >= _LIMIT_BITS).argmax()), values.shape)
    index = ", ".join(str(int(i)) for i in first)
    raise CheckpointError(
        where,
        expected="finite weights below 2**50",
        got=f"{float(values[first])!r} at {quoted(name)}[{index}]",
        hint="the checkpoint is damaged or training diverged; use another",
    )
