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


def to_float32(data: bytes, dtype: str, shape: tuple[int, ...]) -> F32Array:
    """Convert little-endian values exactly; a new array."""
    if dtype == "BF16":
        # bfloat16 is the upper half of a float32.
        bits = np.frombuffer(data, "<u2").astype(np.uint32) << np.uint32(16)
        return bits.view(np.float32).reshape(shape)
    if dtype == "F16":
        with np.errstate(all="ignore"):  # signalling NaN, refused below
            return np.frombuffer(data, "<f2").astype(np.float32).reshape(shape)
    return np.frombuffer(data, "<f4").astype(np.float32).reshape(shape)


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
