# SPDX-License-Identifier: Apache-2.0
"""The operations on vectors of docs/NUMERICS.md sections 4 and 7, bit for bit, on NumPy arrays.

All arrays are float32 unless said otherwise; the last axis is the vector, the axes before it are a batch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .fma import F32Array, F64Array, fma, fma_snapped
from .functions import exp_clamped, rsqrt, snap

_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)
_CHUNK_ELEMS = 1 << 17


def dot8(a: F32Array, b: F32Array) -> F32Array:
    """Dot product in eight lanes over the last axis (section 4); snapped operands of as many axes, which broadcast.

    Not snapped: the formula that uses it does that.
    """
    lanes_a, lanes_b = _lanes(a), _lanes(b)
    shape = np.broadcast_shapes(lanes_a.shape[1:], lanes_b.shape[1:])
    acc = np.zeros(shape, dtype=np.float64)
    product, total = np.empty_like(acc), np.empty_like(acc)
    with np.errstate(all="ignore"):
        for step in range(lanes_a.shape[0]):
            np.multiply(lanes_a[step], lanes_b[step], out=product)
            fma_snapped(product, acc, total)
            acc, total = total, acc
        lanes = acc.astype(np.float32)
        s = lanes[0:4] + lanes[4:8]
        t = s[0:2] + s[2:4]
        return np.asarray(t[0] + t[1])


def dot8_matrix(W: F32Array, x: F32Array) -> F32Array:
    """dot8 of each row of W [R, n] with each vector of x [T, n]: [T, R]."""
    rows, width, batch = W.shape[0], W.shape[1], x.shape[0]
    out = np.empty((batch, rows), dtype=np.float32)
    n_rows = max(1, min(rows, _CHUNK_ELEMS // max(width, 8)))
    n_batch = max(1, _CHUNK_ELEMS // 8 // n_rows)
    for r in range(0, rows, n_rows):
        for t in range(0, batch, n_batch):
            out[t : t + n_batch, r : r + n_rows] = dot8(W[None, r : r + n_rows], x[t : t + n_batch, None])
    return out


def _lanes(v: F32Array) -> F64Array:
    """[..., n] as float64 [ceil(n/8), 8, ...]: the last axis cut into eights and zero-padded, in front."""
    n = v.shape[-1]
    padded = np.zeros((*v.shape[:-1], -(-n // 8) * 8), dtype=np.float64)
    padded[..., :n] = v
    return np.ascontiguousarray(np.moveaxis(padded, -1, 0)).reshape(-1, 8, *v.shape[:-1])


def sum_rising(x: F32Array) -> F32Array:
    """Sum along the last axis in rising index order from +0.0; the axis is removed."""
    total = np.zeros(x.shape[:-1], dtype=np.float32)
    for i in range(x.shape[-1]):
        total = total + x[..., i]
    return np.asarray(total)


def rms(x: F32Array, eps: float) -> F32Array:
    """``x / sqrt(mean(x**2) + eps)``: x [..., n] (section 7.2)."""
    d = snap(dot8(x, x))
    inv = rsqrt(d * _reciprocal(x) + np.float32(eps))
    with np.errstate(all="ignore"):
        return snap(x * inv[..., None])


def centred(x: F32Array) -> F32Array:
    """x minus its mean: [..., n] (section 7.2)."""
    mean = snap(snap(dot8(x, np.ones_like(x))) * _reciprocal(x))
    return snap(x - mean[..., None])


def _reciprocal(x: F32Array) -> np.float32:
    return np.float32(_ONE / np.float32(x.shape[-1]))


def scaled(y: F32Array, weight: F32Array, bias: F32Array | None) -> F32Array:
    """What a norm does with its weight and bias, [n] each: y [..., n] (section 7.2)."""
    with np.errstate(all="ignore"):
        return snap(y * weight if bias is None else fma(y, weight, bias))


def rotate_pairs(x0: F32Array, x1: F32Array, sin: F32Array, cos: F32Array) -> tuple[F32Array, F32Array]:
    """The pairs (x0, x1) turned by the angle of sin and cos (section 7.3, 4)."""
    return snap(fma(-x1, sin, snap(x0 * cos))), snap(fma(x0, sin, snap(x1 * cos)))


def softmax(z: F32Array, valid: npt.NDArray[np.bool_] | None = None, sink: F32Array | None = None) -> F32Array:
    """Softmax over the last axis, 0 where not valid; one at least is valid (section 7.3, 8).

    sink  a score that takes part and is not given out; broadcast to [...]
    """
    valid = np.ones(z.shape, dtype=bool) if valid is None else valid
    m = np.where(valid, z, -np.inf).max(axis=-1, keepdims=True).astype(np.float32)
    if sink is not None:
        m = np.maximum(m, sink[..., None])
    e = np.where(valid, exp_clamped(snap(np.where(valid, z, m) - m)), _ZERO)
    total = sum_rising(e)[..., None]
    if sink is not None:
        total = total + exp_clamped(snap(sink[..., None] - m))
    return snap(e / total)


def weighted_sum(weights: F32Array, values: F32Array) -> F32Array:
    """``o = fma(w[t], v[t], o)`` from +0.0, t rising, then snap: weights [..., t], values [..., t, n]: [..., n]."""
    shape = np.broadcast_shapes(weights.shape[:-1], values.shape[:-2])
    acc = np.zeros((*shape, values.shape[-1]), dtype=np.float64)
    product, total = np.empty_like(acc), np.empty_like(acc)
    weights64, values64 = weights.astype(np.float64), values.astype(np.float64)
    with np.errstate(all="ignore"):
        for t in range(weights.shape[-1]):
            np.multiply(weights64[..., t, None], values64[..., t, :], out=product)
            fma_snapped(product, acc, total)
            acc, total = total, acc
        return snap(acc.astype(np.float32))
