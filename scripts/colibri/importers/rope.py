# SPDX-License-Identifier: Apache-2.0
"""RoPE tables: float32 inverse frequencies with their scaling applied.

The operations and their order are those of transformers in float32, where scalar / tensor is reciprocal times scalar.
Its power function rounds differently with each vector instruction set; here it is the correctly rounded one, as in its
scalar code, whose bits these are. Its AVX2 code was measured within 1 unit in the last place of them, 3 after scaling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from colibri.model import F32Array

_F32 = np.float32


@dataclass(frozen=True)
class Llama3Scaling:
    """Wavelengths beyond original / low are stretched by factor, below original / high kept, blended between."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_positions: int


def inverse_frequencies(theta: float, n_dims: int) -> F32Array:
    """``theta ** (-2 i / n_dims)``, i = 0 .. n_dims/2 - 1."""
    return np.asarray(_F32(1) / _powers(theta, n_dims), dtype=_F32)


def _powers(theta: float, n_dims: int) -> F32Array:
    exponents = np.arange(0, n_dims, 2).astype(_F32) / _F32(n_dims)
    base = float(_F32(theta))
    # A float64 power rounded once: its error is far below half a unit of float32.
    return np.array([math.pow(base, float(e)) for e in exponents], dtype=np.float64).astype(_F32)


def scale_linear(inv_freq: F32Array, factor: float) -> F32Array:
    """Positions `factor` times as dense."""
    return np.asarray(inv_freq / _F32(factor), dtype=_F32)


def scale_llama3(inv_freq: F32Array, scaling: Llama3Scaling) -> F32Array:
    """Llama 3.1's three bands."""
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    original = scaling.original_max_positions
    factor = _F32(scaling.factor)
    wavelength = (_F32(1) / inv_freq) * _F32(2 * math.pi)
    is_long = wavelength > _F32(original / low)
    is_short = wavelength < _F32(original / high)
    banded = np.where(is_long, inv_freq / factor, inv_freq)
    smooth = ((_F32(1) / wavelength) * _F32(original) - _F32(low)) / _F32(high - low)
    blended = (_F32(1) - smooth) * banded / factor + smooth * banded
    return np.where(is_long | is_short, banded, blended).astype(_F32)


@dataclass(frozen=True)
class YarnScaling:
    """Frequencies of more than beta_fast turns in the original context are kept, of less than beta_slow stretched by factor.

    truncate  the two dimensions between which it blends are rounded outwards
    """

    factor: float
    original_max_positions: int
    beta_fast: float
    beta_slow: float
    truncate: bool


def scale_yarn(theta: float, n_dims: int, scaling: YarnScaling) -> F32Array:
    """YaRN's inverse frequencies (Peng et al. 2023, "NTK-by-parts")."""

    def dimension(n_turns: float) -> float:
        turns = scaling.original_max_positions / (n_turns * 2 * math.pi)
        return (n_dims * math.log(turns)) / (2 * math.log(theta))

    low, high = dimension(scaling.beta_fast), dimension(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, n_dims - 1)
    if low == high:
        high += 0.001  # as published, against a division by zero
    steps = (np.arange(n_dims // 2).astype(_F32) - _F32(low)) / _F32(high - low)
    kept = _F32(1) - np.clip(steps, _F32(0), _F32(1))
    # The reference rounds base ** x before it multiplies and inverts.
    powers = _powers(theta, n_dims)
    stretched = _F32(1) / (_F32(scaling.factor) * powers)
    return np.asarray(stretched * (_F32(1) - kept) + (_F32(1) / powers) * kept, dtype=_F32)


def yarn_factor(factor: float, mscale: float = 1.0) -> float:
    """What YaRN multiplies sine and cosine with: ``0.1 * mscale * ln(factor) + 1``."""
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


def scale_each(theta: float, n_dims: int, factors: list[float]) -> F32Array:
    """LongRoPE: each frequency has a divisor of its own."""
    return np.asarray(_F32(1) / (np.array(factors, dtype=_F32) * _powers(theta, n_dims)), dtype=_F32)
