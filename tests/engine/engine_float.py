# SPDX-License-Identifier: Apache-2.0
"""binary32 operations for the expected values of the engine's tests, one element at a time."""

from __future__ import annotations

import math

import numpy as np

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
