# SPDX-License-Identifier: Apache-2.0
"""Rotary positions as a file says them: a base, divisors of its frequencies, and the order of the rows of q and k."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from colibri.axes import Attention, LatentAttention, Rope
from colibri.export.gguf.refusal import refused
from colibri.importers.rope import inverse_frequencies
from colibri.model import F32Array, ModelConfig

_THETA = 10000.0


def rope_of(config: ModelConfig) -> Rope:
    """Return the first rotary embedding, which is every layer's where a file can say the model."""
    for layer in config.layers:
        if isinstance(layer.mixer, Attention | LatentAttention) and layer.mixer.rope is not None:
            return layer.mixer.rope
    raise refused("attention with rotary positions", "none")


def frequencies(rope: Rope, *, divisors: bool) -> tuple[float, F32Array | None]:
    """Return theta, and the divisors of its table where that is not the model's (llama.cpp's rope_freqs).

    divisors  whether the architecture takes them
    """
    table = np.asarray(rope.inv_freq, dtype=np.float32)
    n = rope.rotary_dim
    if len(table) > 1 and 0 < table[-1] < 1:
        exact = float(table[-1]) ** (-n / (n - 2))
        for theta in (float(round(exact)), float(f"{exact:.6g}"), exact):
            if np.array_equal(inverse_frequencies(theta, n), table):
                return theta, None
    plain = inverse_frequencies(_THETA, n)
    if np.array_equal(plain, table):
        return _THETA, None
    if not divisors:
        raise refused("rotary frequencies that are powers of one base", "scaled ones")
    return _THETA, _divisors(plain, table)


def _divisors(plain: F32Array, table: F32Array) -> F32Array:
    """Float32 divisors that give the table's bits; raises UsageError where rounding allows none."""
    divisors = (plain / table).astype(np.float32)
    for step in (-1, 1, -2, 2):
        wrong = plain / divisors != table
        if not wrong.any():
            break
        near = (plain / table).astype(np.float32).view(np.int32) + step
        divisors = np.where(wrong, near.view(np.float32), divisors)
    if (plain / divisors != table).any():
        raise refused("rotary frequencies that are a quotient of float32 values", "others")
    return divisors


def with_pairs(config: ModelConfig, *, adjacent: bool) -> ModelConfig:
    """Return the axes with rows of q and k in the order of adjacent pairs, or of halves."""
    pairing: Literal["adjacent", "half"] = "adjacent" if adjacent else "half"
    done = {}
    for layer in dict.fromkeys(config.layers):
        done[layer] = layer
        if isinstance(layer.mixer, Attention) and layer.mixer.rope is not None:
            done[layer] = replace(layer, mixer=replace(layer.mixer, rope=replace(layer.mixer.rope, pairing=pairing)))
    return replace(config, layers=tuple(done[layer] for layer in config.layers))
