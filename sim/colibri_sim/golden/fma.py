# SPDX-License-Identifier: Apache-2.0
"""Exact binary32 fused multiply-add on NumPy arrays (docs/NUMERICS.md section 1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F32Array = npt.NDArray[np.float32]
F64Array = npt.NDArray[np.float64]

_LOW_BITS = np.uint64(0x1FFFFFFF)
_HALF_WAY = np.uint64(0x10000000)
_MIN_NORMAL = 2.0**-126


def fma(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> F32Array:
    """``a*b + c`` with one rounding, to nearest even; float32 operands, broadcast.

    Right for all bit patterns: subnormals, signed zeros, overflow, infinities. A NaN comes out as some NaN.
    """
    with np.errstate(all="ignore"):
        a64, b64, c64 = (np.asarray(x, dtype=np.float32).astype(np.float64) for x in (a, b, c))
        p64 = a64 * b64
        s = np.asarray(p64 + c64)
        unsafe = ((s.view(np.uint64) & _LOW_BITS) == _HALF_WAY) | ((np.abs(s) < _MIN_NORMAL) & (s != 0.0))
        if unsafe.any():
            p64, c64 = np.broadcast_arrays(p64, c64)
            s[unsafe] = round_to_odd(s[unsafe], p64[unsafe], c64[unsafe])
        return s.astype(np.float32)


def fma_snapped(p: F64Array, c: F64Array, out: F64Array) -> None:
    """``out = f32(p + c)``, all float64 of one shape: the inner step of long sums, without the test for subnormals.

    Only where p is a product of two snapped float32 values and c a sum of such: both are multiples of 2**-126, so no
    non-zero result is smaller (NUMERICS 2a). out is C-contiguous and overlaps neither.
    """
    np.add(p, c, out=out)
    half_way = (out.view(np.uint64) & _LOW_BITS) == _HALF_WAY
    if half_way.any():
        out[half_way] = round_to_odd(out[half_way], p[half_way], c[half_way])
    out[...] = out.astype(np.float32)


def round_to_odd(s: F64Array, p: F64Array, c: F64Array) -> F64Array:
    """Of the two float64 values around the exact p + c, the one with an odd last bit; s itself where s is exact.

    s = p + c rounded to nearest. Rounding the answer again, to 25 bits or fewer, is as good as rounding p + c once.
    """
    partner = s - p
    error = (p - (s - partner)) + (c - partner)
    bits = s.view(np.int64)
    move = (error != 0.0) & ((bits & 1) == 0)
    outwards = (error > 0.0) == (s > 0.0)
    return np.where(move, bits + np.where(outwards, 1, -1), bits).view(np.float64)
