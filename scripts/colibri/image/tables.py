# SPDX-License-Identifier: Apache-2.0
"""The vectors in an image that are no tensors of the model: computed from its axes, float32 (docs/NUMERICS.md 7.3).

rope.inv_freq    the inv_freq of every distinct position embedding, one after the other
rope.factor      for each of those its factor on sine and cosine; only where one is not 1
temperature.N    t[m] of the N-th distinct temperature, for every m that the context reaches
relative_bias.X  of each head the bias of every distance, over the past or the source: the only one that tensors go into
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from colibri.axes import Attention, LatentAttention, Rope, Temperature
from colibri.model import F32Array, ModelConfig
from colibri.tables import bias_table, temperature_table

INV_FREQ, ROPE_FACTOR, TEMPERATURE = "rope.inv_freq", "rope.factor", "temperature."
RELATIVE_BIAS = "relative_bias."


def ropes(config: ModelConfig) -> dict[tuple[tuple[float, ...], float], int]:
    """(inv_freq, factor) of every distinct position embedding, and the index of its first pair."""
    found: dict[tuple[tuple[float, ...], float], int] = {}
    n_pairs = 0
    for layer in config.layers:
        rope = layer.mixer.rope if isinstance(layer.mixer, Attention | LatentAttention) else None
        if rope is not None and rope.inv_freq and rope_key(rope) not in found:
            found[rope_key(rope)] = n_pairs
            n_pairs += len(rope.inv_freq)
    return found


def rope_key(rope: Rope) -> tuple[tuple[float, ...], float]:
    """What sine and cosine depend on."""
    return rope.inv_freq, rope.factor


def temperatures(config: ModelConfig) -> dict[Temperature, str]:
    """Every distinct temperature and the name of its table."""
    found: dict[Temperature, str] = {}
    for layer in config.layers:
        if isinstance(layer.mixer, Attention) and layer.mixer.temperature is not None:
            found.setdefault(layer.mixer.temperature, f"{TEMPERATURE}{len(found)}")
    return found


def has_rope_factor(config: ModelConfig) -> bool:
    """Whether sine and cosine are multiplied by anything but 1."""
    return any(factor != 1 for _, factor in ropes(config))


def table_sizes(config: ModelConfig) -> dict[str, int]:
    """Name and number of elements of each table."""
    sizes = {}
    n_pairs = sum(len(inv_freq) for inv_freq, _ in ropes(config))
    if n_pairs:
        sizes[INV_FREQ] = n_pairs
    if has_rope_factor(config):
        sizes[ROPE_FACTOR] = n_pairs
    for temperature, name in temperatures(config).items():
        sizes[name] = config.max_seq // temperature.interval + 1
    for over, (_, n_heads) in config.relative_biases.items():
        span = _span(config, over)
        sizes[f"{RELATIVE_BIAS}{over}"] = n_heads * (span if over == "past" else 2 * span - 1)
    return sizes


def _span(config: ModelConfig, over: str) -> int:
    return config.max_seq if over == "past" or config.encoder is None else config.encoder.max_source


def table_values(config: ModelConfig, name: str, tensor: Callable[[str], F32Array]) -> F32Array:
    """The elements of a table. tensor: gives the stored values of a name."""
    if name.startswith(RELATIVE_BIAS):
        over = name.removeprefix(RELATIVE_BIAS)
        return bias_table(config.relative_biases[over][0], over, tensor(name), _span(config, over)).ravel()
    match name:
        case "rope.inv_freq":
            values = [f for inv_freq, _ in ropes(config) for f in inv_freq]
        case "rope.factor":
            values = [factor for inv_freq, factor in ropes(config) for _ in inv_freq]
        case _:
            temperature = next(t for t, its_name in temperatures(config).items() if its_name == name)
            return temperature_table(temperature, config.max_seq)
    return np.array(values, dtype=np.float32)
