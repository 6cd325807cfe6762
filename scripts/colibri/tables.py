# SPDX-License-Identifier: Apache-2.0
"""Tables that the host computes in float64 and both golden model and engine read as float32 (docs/NUMERICS.md section 7)."""

from __future__ import annotations

import math

import numpy as np

from colibri.axes import Temperature
from colibri.model import F32Array


def temperature_table(temperature: Temperature, max_seq: int) -> F32Array:
    """``t[m] = f32(1 + f64(scale) * ln(1 + m))`` for every m = (position + 1) div interval of the context (7.3, 6)."""
    largest = max_seq // temperature.interval
    return np.array([1.0 + temperature.scale * math.log(1 + m) for m in range(largest + 1)], dtype=np.float32)
