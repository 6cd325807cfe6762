# SPDX-License-Identifier: Apache-2.0
"""Matrix products ``y = W x`` for each stored format (docs/NUMERICS.md section 5), batched over vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colibri.numerics import AMAX_ZERO_BITS
from colibri.quantise import Stored

from .fma import F32Array, F64Array, fma
from .functions import amax_bits, rint, snap
from .vectors import dot8_matrix

_127 = np.float32(127.0)
_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)


@dataclass(frozen=True)
class QuantisedVectors:
    """T activation vectors of n elements in int8.

    q       int8 [T, n], in -127..127
    scales  float32 [T, groups]
    group   elements that share a scale; n where there is one scale a vector
    """

    q: npt.NDArray[np.int8]
    scales: F32Array
    group: int

    def values(self) -> F32Array:
        """``snap(f32(q) * scale)``, float32 [T, n]: what a q8 KV cache reads back."""
        scales = np.repeat(self.scales, self.group, axis=1)[:, : self.q.shape[1]]
        return snap(self.q.astype(np.float32) * scales)


def quantise(x: F32Array, group: int = 0) -> QuantisedVectors:
    """Quantise x [T, n] to int8, one scale a vector (group 0) or one for each `group` elements."""
    batch, n = x.shape
    width = group or n
    n_groups = -(-n // width)
    padded = np.zeros((batch, n_groups * width), dtype=np.float32)
    padded[:, :n] = x
    grouped = padded.reshape(batch, n_groups, width)
    bits = amax_bits(grouped)
    zero = bits < AMAX_ZERO_BITS
    amax = np.where(zero, _ONE, bits.view(np.float32))
    scales = np.where(zero, _ZERO, amax / _127)
    inverse = np.where(zero, _ZERO, _127 / amax)
    q = np.clip(rint(grouped * inverse[..., None]), -_127, _127).astype(np.int8)
    return QuantisedVectors(q.reshape(batch, -1)[:, :n], scales, width)


def activation_group(weight: Stored) -> int:
    """The group in which a product with an integer `weight` quantises its vector: only q8:G has one."""
    return weight.format.group if weight.format.kind == "q8" else 0


def rows_of(weight: Stored, rows: slice | npt.NDArray[np.int64]) -> Stored:
    """The matrix of some rows of a matrix."""
    data = weight.data[rows]
    return Stored(
        weight.name,
        weight.format,
        len(data),
        weight.cols,
        data,
        None if weight.scales is None else weight.scales[rows],
        None if weight.multipliers is None else weight.multipliers[rows],
    )


def matmul(weight: Stored, x: F32Array) -> F32Array:
    """``y = W x`` for each vector: W [R, n], x [T, n] snapped float32, y [T, R] snapped."""
    with np.errstate(all="ignore"):
        if not weight.format.is_integer:
            return snap(dot8_matrix(weight.values(), x))
        return product_quantised(weight, quantise(x, activation_group(weight)))


def product_quantised(weight: Stored, x: QuantisedVectors) -> F32Array:
    """``y = W x`` of an integer format and vectors quantised for it: [T, R]."""
    if weight.scales is None:
        raise ValueError(f"{weight.name}: no scales with {weight.format}")
    if weight.format.kind == "q4":
        if weight.multipliers is None:
            raise ValueError(f"{weight.name}: no multipliers with {weight.format}")
        per_column = np.repeat(weight.multipliers, weight.format.group or weight.cols, axis=1)[:, : weight.cols]
        return _scaled(_accumulate(weight.data.astype(np.float64) * per_column, x.q), weight.scales, x.scales)
    if not weight.format.group:
        return _scaled(_accumulate(weight.data, x.q), weight.scales, x.scales)
    y = np.zeros((x.q.shape[0], weight.rows), dtype=np.float32)
    for g in range(weight.scales.shape[1]):
        part = slice(g * weight.format.group, (g + 1) * weight.format.group)
        acc = _accumulate(weight.data[:, part], x.q[:, part])
        y = fma(acc, weight.scales[None, :, g] * x.scales[:, g, None], y)
    return snap(y)


def _accumulate(w: npt.NDArray[np.int8] | F64Array, xq: npt.NDArray[np.int8]) -> F32Array:
    """The int32 accumulators [T, R], rounded to float32; exact before that, as all sums are far below 2**53."""
    acc = xq.astype(np.float64) @ w.astype(np.float64).T
    return (acc + 0.0).astype(np.float32)


def _scaled(acc: F32Array, scales: F32Array, x_scales: F32Array) -> F32Array:
    return snap(acc * (scales[:, 0] * x_scales[:, :1]))
