# SPDX-License-Identifier: Apache-2.0
"""binary32 operations for the expected values of the engine's tests, one element at a time."""

from __future__ import annotations

import ctypes
import math

import numpy as np

from colibri.numerics import COEFFICIENTS

F = np.float32
SNAP = F(2.0**-40)


def fma(a: float, b: float, c: float) -> F:
    """a * b + c with one rounding: the float64 sum is rounded to odd before it is rounded to binary32."""
    p = float(a) * float(b)
    s = p + float(c)
    t = s - p
    error = (p - (s - t)) + (float(c) - t)
    if error != 0 and int(np.float64(s).view(np.int64)) & 1 == 0:
        s = math.nextafter(s, math.copysign(math.inf, error))
    return F(s)


def snap(x: F) -> F:
    return F(0) if abs(x) < SNAP else F(x)


def dot8(a: np.ndarray, b: np.ndarray) -> F:
    lanes = [F(0)] * 8
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        lanes[i % 8] = fma(x, y, lanes[i % 8])
    s = [F(lanes[j] + lanes[j + 4]) for j in range(4)]
    return F(F(s[0] + s[2]) + F(s[1] + s[3]))


def quantise(x: np.ndarray) -> tuple[np.ndarray, F]:
    amax = np.abs(x).max()
    if amax < F(2.0**-33):
        return np.zeros(len(x), np.int64), F(0)
    q = np.clip(np.rint((x * (F(127) / amax)).astype(F)), -127, 127)
    return q.astype(np.int64), F(amax / F(127))


K = {name: F(value) for name, value in COEFFICIENTS.items()}
MAGIC = F(1.5 * 2**23)


def rint(v: F) -> F:
    return F(F(v + MAGIC) - MAGIC)


def exp_bits(x: float) -> F:
    x = max(F(x), F(-28))
    k = rint(F(x * K["LOG2E"]))
    r = fma(-k, K["LN2_LO"], fma(-k, K["LN2_HI"], x))
    p = K["E6"]
    for c in (K["E5"], K["E4"], K["E3"], K["E2"], F(1), F(1)):
        p = fma(p, r, c)
    return snap(F(np.ldexp(p, int(k))))


def silu_bits(x: float) -> F:
    e = exp_bits(-abs(x))
    return snap(F(F(x) * snap(F((F(1) if x >= 0 else e) / F(F(1) + e)))))


def widen_half(x: np.ndarray) -> np.ndarray:
    """binary16 to binary32, -0.0 to +0.0."""
    return x.view(np.float16).astype(F) + F(0)


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def activations(rng: np.random.Generator, n: int) -> np.ndarray:
    x = rng.standard_normal(n).astype(F)
    x[rng.random(n) < 0.1] = 0
    return x
