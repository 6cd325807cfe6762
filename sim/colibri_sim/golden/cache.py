# SPDX-License-Identifier: Apache-2.0
"""What the layers remember of earlier positions (docs/NUMERICS.md section 7.3, 7; 7.5, 5; 7.6)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from colibri.axes import Attention, Convolution, LatentAttention, Mixer
from colibri.model import ModelConfig
from colibri.numerics import RANGE_BITS

from .fma import F32Array
from .functions import snap
from .products import quantise

KvFormat = Literal["f32", "f16", "q8"]
F16_LIMIT_BITS = 0x477FF000
"""65520: the least magnitude that rounds to an infinity in binary16."""


class KvCache:
    """The streams of each layer, as they are read back: float32 [positions, heads, elements] each.

    Attention has two, keys and values; latent attention one, which is both; a convolution one, its gated input.
    """

    def __init__(self, config: ModelConfig, kv: KvFormat) -> None:
        if kv not in get_args(KvFormat):
            raise ValueError(f"kv is f32, f16 or q8, not {kv!r}")
        self.kv = kv
        self._streams = [
            [
                np.zeros((_positions(config, layer.mixer), *shape), dtype=np.float32)
                for shape in _shapes(layer.mixer, config.hidden_size)
            ]
            for layer in config.layers
        ]
        self._formats: list[KvFormat] = ["f32" if isinstance(x.mixer, Convolution) else kv for x in config.layers]

    @property
    def limit_bits(self) -> int:
        """Bits of the least magnitude that cannot be stored: the range check of keys and values."""
        return F16_LIMIT_BITS if self.kv == "f16" else RANGE_BITS

    def append(self, layer: int, position: int, *vectors: F32Array) -> None:
        """Write one array [T, heads, elements] for each stream at position, position + 1, ..."""
        for stream, x in zip(self._streams[layer], vectors, strict=True):
            stream[position : position + len(x)] = _round_trip(x, self._formats[layer])

    def read(self, layer: int, end: int) -> list[F32Array]:
        """Each stream's positions 0 .. end - 1."""
        return [stream[:end] for stream in self._streams[layer]]


def _positions(config: ModelConfig, mixer: Mixer) -> int:
    """As many as the sequence has, or the source."""
    if isinstance(mixer, Attention) and mixer.over != "past":
        assert config.encoder is not None
        return config.encoder.max_source
    return config.max_seq


def _shapes(mixer: Mixer, hidden: int) -> list[tuple[int, int]]:
    match mixer:
        case Attention():
            return [(mixer.n_kv_heads, mixer.head_dim)] * 2
        case LatentAttention():
            return [(1, mixer.kv_rank + mixer.rope_dim)]
        case Convolution():
            return [(1, hidden)]


def _round_trip(x: F32Array, kv: KvFormat) -> F32Array:
    """[T, heads, elements] as it is read back; each head has a scale of its own."""
    if kv == "f32":
        return x
    if kv == "f16":
        return snap(x.astype(np.float16).astype(np.float32))
    return quantise(x.reshape(-1, x.shape[-1])).values().reshape(x.shape)
