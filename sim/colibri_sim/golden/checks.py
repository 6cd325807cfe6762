# SPDX-License-Identifier: Apache-2.0
"""What the golden model asserts of every float it hands on (docs/NUMERICS.md sections 2 and 3)."""

from __future__ import annotations

import numpy as np

from colibri.numerics import RANGE_BITS, SNAP_BITS

from .fma import F32Array
from .functions import amax_bits, magnitude_bits

_INFINITY_BITS = 0x7F800000


class RangeExceeded(ArithmeticError):
    """A range-checked vector holds a magnitude at or over its limit; the engine returns COLIBRI_ERR_RANGE.

    position  token position in the sequence, first 0
    tensor    its name in the trace; layer and slot None where it has none
    """

    def __init__(
        self,
        position: int,
        tensor: str,
        layer: int | None = None,
        slot: int | None = None,
        limit_bits: int = RANGE_BITS,
    ) -> None:
        self.position = position
        self.tensor = tensor
        self.layer = layer
        self.slot = slot
        limit = "2**50" if limit_bits == RANGE_BITS else f"{float(np.uint32(limit_bits).view(np.float32)):g}"
        place = tensor if layer is None else f"layer {layer} {tensor}"
        super().__init__(f"position {position}: {place if slot is None else f'{place} slot {slot}'} reaches {limit}")


class ContractViolation(AssertionError):
    """A value that the arithmetic contract rules out was produced: a bug of the golden model, never of its input."""


def check_snapped(name: str, values: F32Array, *, finite: bool = True) -> None:
    """Raise ContractViolation unless every bit pattern is +0.0 or has a magnitude of at least 2**-40, and is finite.

    finite False admits infinities and NaNs, for a vector whose range check is still to come.
    """
    bits = np.ascontiguousarray(values).view(np.uint32)
    magnitude = magnitude_bits(values)
    good = (bits == 0) | (magnitude >= SNAP_BITS)
    if finite:
        good &= magnitude < _INFINITY_BITS
    if not good.all():
        first = tuple(int(i) for i in np.argwhere(~good)[0])
        raise ContractViolation(f"{name}{list(first)} has bits 0x{int(bits[first]):08x}: not snapped, or not finite")


def first_out_of_range(values: F32Array, limit_bits: int = RANGE_BITS) -> int | None:
    """Index of the first vector (values [T, n]) with a magnitude at or over the limit; None where all are below."""
    bad = np.flatnonzero(amax_bits(values) >= limit_bits)
    return int(bad[0]) if bad.size else None
