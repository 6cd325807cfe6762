# SPDX-License-Identifier: Apache-2.0
"""Tables that the host computes in float64 and both golden model and engine read as float32 (docs/NUMERICS.md section 7)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from colibri.axes import RelativeBias, Temperature
from colibri.model import F32Array


def temperature_table(temperature: Temperature, max_seq: int) -> F32Array:
    """``t[m] = f32(1 + f64(scale) * ln(1 + m))`` for every m = (position + 1) div interval of the context (7.3, 6)."""
    largest = max_seq // temperature.interval
    return np.array([1.0 + temperature.scale * math.log(1 + m) for m in range(largest + 1)], dtype=np.float32)


def bias_table(bias: RelativeBias, over: str, by_bucket: F32Array, span: int) -> F32Array:
    """Of each head's bias the value for every distance: by_bucket [n_heads, n_buckets] to [n_heads, distances] (7.3, 8).

    Distances ``t - position`` rise from 1 - span; over the past to 0, over the source to span - 1.
    """
    distances = np.arange(1 - span, 1 if over == "past" else span)
    return np.ascontiguousarray(by_bucket[:, _buckets(bias, over, distances)])


def _buckets(bias: RelativeBias, over: str, distances: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """T5's buckets: the first half one for each distance, the others as far apart as their logarithms. All in float32.

    The logarithm is float64's, rounded: NumPy's own of float32 differs between processors.
    """
    first, n = 0 * distances, bias.n_buckets
    if over == "source":
        n //= 2
        first = np.where(distances > 0, n, 0)
    away, exact = np.abs(distances), n // 2
    ratio = np.log(np.float64(np.maximum(away, exact).astype(np.float32) / np.float32(exact))).astype(np.float32)
    steps = ratio / np.float32(math.log(bias.max_distance / exact)) * np.float32(n - exact)
    wide = np.minimum(exact + steps.astype(np.int64), n - 1)
    return first + np.where(away < exact, away, wide)
