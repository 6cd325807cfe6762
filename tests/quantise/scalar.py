# SPDX-License-Identifier: Apache-2.0
"""docs/NUMERICS.md section 5, one number at a time: Python floats (binary64), exact fractions and struct. No NumPy, none of ours.

A float32 is carried as the float of the same value; `f32` rounds a result to it.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction


def bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def from_bits(word: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", word))[0])


def nearest(value: Fraction, mantissa: int, lowest: int) -> Fraction:
    """Round to nearest even: `mantissa` bits, no step smaller than 2**lowest."""
    if value == 0:
        return Fraction(0)
    exponent = math.floor(math.log2(abs(value))) if abs(value) > Fraction(1, 1 << 900) else -900
    while Fraction(2) ** (exponent + 1) <= abs(value):
        exponent += 1
    while Fraction(2) ** exponent > abs(value):
        exponent -= 1
    step = Fraction(2) ** max(exponent - mantissa + 1, lowest)
    return round(value / step) * step


def f32(value: Fraction) -> float:
    return float(nearest(value, 24, -149))


def snap(value: float) -> float:
    return 0.0 if abs(value) < 2.0**-40 else value


def bf16(w: float) -> int:
    """The 16 bits of w rounded to bfloat16."""
    return bits(float(nearest(Fraction(w), 8, -133))) >> 16


def f16(w: float) -> int:
    """The 16 bits of w rounded to binary16."""
    rounded = math.copysign(float(nearest(Fraction(w), 11, -24)), w)  # a fraction has no -0
    return int(struct.unpack("<H", struct.pack("<e", rounded))[0])


def widen_bf16(word: int) -> float:
    return from_bits(word << 16)


def widen_f16(word: int) -> float:
    return snap(float(struct.unpack("<e", struct.pack("<H", word))[0]))


@dataclass
class Row:
    """One quantised row: q by element, scales (one, or one a group), multipliers of q4."""

    q: list[int]
    scales: list[float]
    multipliers: list[int]
    group: int

    def value(self, i: int) -> float:
        g = i // self.group
        many = bool(self.multipliers)
        scale = f32(Fraction(self.multipliers[g]) * Fraction(self.scales[0])) if many else self.scales[g]
        return snap(f32(Fraction(self.q[i]) * Fraction(scale)))


def _clamp(value: int, limit: int) -> int:
    return max(-limit, min(limit, value))


def _groups(row: list[float], group: int) -> list[list[float]]:
    return [row[i : i + group] for i in range(0, len(row), group)]


def q8(row: list[float], group: int) -> Row:
    q: list[int] = []
    scales: list[float] = []
    for part in _groups(row, group or len(row)):
        amax = max(abs(w) for w in part)
        if amax < 2.0**-33:
            scales.append(0.0)
            q += [0] * len(part)
        else:
            s = f32(Fraction(amax) / 127)
            scales.append(s)
            q += [_clamp(round(w / s), 127) for w in part]  # both are binary64: the division is f64's
    return Row(q, scales, [], group or len(row))


def q4(row: list[float], group: int) -> Row:
    parts = _groups(row, group or len(row))
    d = [max(abs(w) for w in part) / 7 for part in parts]
    largest = max(d)
    s = f32(Fraction(largest / 255))
    if 7 * largest < 2.0**-33 or s < 2.0**-40:
        return Row([0] * len(row), [0.0], [1] * len(parts), group or len(row))
    m = [max(1, min(255, math.ceil(x / s))) for x in d]
    q = [_clamp(round(w / (k * s)), 7) for part, k in zip(parts, m, strict=True) for w in part]
    return Row(q, [s], m, group or len(row))
