# SPDX-License-Identifier: Apache-2.0
"""The functions of docs/NUMERICS.md sections 1, 2 and 6, bit for bit, element by element on NumPy arrays of float32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colibri.numerics import COEFFICIENTS, EXP_MIN, SNAP_BITS

from .fma import F32Array, fma

C = {name: np.float32(value) for name, value in COEFFICIENTS.items()}

_MAGNITUDE = np.uint32(0x7FFFFFFF)
_SNAP = np.uint32(SNAP_BITS)
_RINT = np.float32(float.fromhex("0x1.8p23"))
_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)
_EXP_MIN = np.float32(EXP_MIN)
_TANH_SPLIT = np.float32(0.625)
_GELU_LIMIT = np.float32(16.0)


def magnitude_bits(x: F32Array) -> npt.NDArray[np.uint32]:
    """``bits(x) & 0x7fffffff``: rises with |x|; infinities and NaNs come last."""
    return np.asarray(np.ascontiguousarray(x, dtype=np.float32).view(np.uint32) & _MAGNITUDE)


def amax_bits(x: F32Array) -> npt.NDArray[np.uint32]:
    """Bits of ``max |x|`` along the last axis."""
    return np.asarray(magnitude_bits(x).max(axis=-1))


def snap(v: npt.ArrayLike) -> F32Array:
    """+0.0 where |v| < 2**-40, v elsewhere (section 2)."""
    v32 = np.asarray(v, dtype=np.float32)
    shape = v32.shape
    return np.where(magnitude_bits(v32).reshape(shape) < _SNAP, _ZERO, v32)


def rint(v: npt.ArrayLike) -> F32Array:
    """The nearest integer, ties to even, for |v| <= 2**22 (section 1)."""
    return np.asarray((np.asarray(v, dtype=np.float32) + _RINT) - _RINT)


def exp(x: npt.ArrayLike) -> F32Array:
    """``e**x`` for -28 <= x <= 0 (section 6); callers clamp."""
    x32 = np.asarray(x, dtype=np.float32)
    k = rint(x32 * C["LOG2E"])
    r = fma(-k, C["LN2_HI"], x32)
    r = fma(-k, C["LN2_LO"], r)
    p = fma(C["E6"], r, C["E5"])
    for coefficient in (C["E4"], C["E3"], C["E2"], _ONE, _ONE):
        p = fma(p, r, coefficient)
    return snap((p.view(np.int32) + (k.astype(np.int32) << 23)).view(np.float32))


def exp_clamped(x: npt.ArrayLike) -> F32Array:
    """``exp(max(x, -28))``, as every caller of exp writes it."""
    return exp(np.maximum(np.asarray(x, dtype=np.float32), _EXP_MIN))


def sigmoid(x: npt.ArrayLike) -> F32Array:
    """``1 / (1 + e**-x)``, any finite x."""
    x32 = np.asarray(x, dtype=np.float32)
    e = exp_clamped(-np.abs(x32))
    return snap(np.where(x32 >= _ZERO, _ONE, e) / (_ONE + e))


def silu(x: npt.ArrayLike) -> F32Array:
    """``x * sigmoid(x)``."""
    x32 = np.asarray(x, dtype=np.float32)
    return snap(x32 * sigmoid(x32))


def tanh(x: npt.ArrayLike) -> F32Array:
    """Hyperbolic tangent, any finite x: a quotient of exponentials, near 0 an odd polynomial."""
    x32 = np.asarray(x, dtype=np.float32)
    t = np.abs(x32)
    e = exp_clamped(np.float32(-2.0) * t)
    large = (_ONE - e) / (_ONE + e)
    c = np.minimum(t, _TANH_SPLIT)
    c2 = c * c
    p = _horner(c2, "T11", "T9", "T7", "T5", "T3")
    y = np.where(t < _TANH_SPLIT, fma(p * c2, c, c), large)
    return snap(np.where(x32 >= _ZERO, y, -y))


def gelu_tanh(x: npt.ArrayLike) -> F32Array:
    """``x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3))) / 2``, any finite x."""
    x32 = np.asarray(x, dtype=np.float32)
    a = np.clip(x32, -_GELU_LIMIT, _GELU_LIMIT)
    return snap(x32 * sigmoid(a * fma(a * a, C["G3"], C["G1"])))


def gelu_erf(x: npt.ArrayLike) -> F32Array:
    """x times the normal distribution function of x, any finite x."""
    x32 = np.asarray(x, dtype=np.float32)
    t: F32Array = np.asarray(np.minimum(np.abs(x32), _GELU_LIMIT))
    e = exp_clamped(snap(np.float32(-0.5) * (t * t)))
    m: F32Array = t / (np.float32(3.0) + t)
    q = e * fma(_horner(m, "P7", "P6", "P5", "P4", "P3", "P2", "P1"), m, np.float32(0.5))
    return snap(x32 * np.where(x32 >= _ZERO, _ONE - q, q))


def relu(x: npt.ArrayLike) -> F32Array:
    """``max(x, +0.0)``."""
    return np.maximum(np.asarray(x, dtype=np.float32), _ZERO)


def relu2(x: npt.ArrayLike) -> F32Array:
    """The square of relu."""
    positive = relu(x)
    return snap(positive * positive)


def _horner(x: F32Array, highest: str, *others: str) -> F32Array:
    """Polynomial in x of named coefficients, the highest first."""
    p = np.asarray(C[highest])
    for name in others:
        p = fma(p, x, C[name])
    return p


def sincos(t: npt.ArrayLike) -> tuple[F32Array, F32Array]:
    """(sin t, cos t) for 0 <= t < 2**20, t in radians."""
    t32 = np.asarray(t, dtype=np.float32)
    k = rint(t32 * C["TWO_OVER_PI"])
    r = fma(-k, C["PIO2_A"], t32)
    r = fma(-k, C["PIO2_B"], r)
    r = snap(fma(-k, C["PIO2_C"], r))
    r2 = r * r
    a = fma(fma(C["S7"], r2, C["S5"]), r2, C["S3"])
    s = fma(a * r2, r, r)
    b = fma(fma(fma(C["C8"], r2, C["C6"]), r2, C["C4"]), r2, np.float32(-0.5))
    c = fma(b, r2, _ONE)
    n = k.astype(np.int32) & 3
    return snap(np.choose(n, (s, c, -s, -c))), snap(np.choose(n, (c, -s, -c, s)))


def rsqrt(v: npt.ArrayLike) -> F32Array:
    """``1 / sqrt(v)``, two roundings."""
    return np.asarray(_ONE / np.sqrt(np.asarray(v, dtype=np.float32)))
