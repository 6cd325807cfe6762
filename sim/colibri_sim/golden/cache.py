# SPDX-License-Identifier: Apache-2.0
"""The key-value cache (docs/NUMERICS.md section 7, 2.4)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from colibri.model import ModelConfig

from .fma import F32Array
from .products import quantise

KvFormat = Literal["f32", "q8"]


class KvCache:
    """Keys and values of all layers and positions, as they are read back: float32 [max_seq, n_kv_heads, head_dim]."""

    def __init__(self, config: ModelConfig, kv: KvFormat) -> None:
        if kv not in ("f32", "q8"):
            raise ValueError(f"kv is f32 or q8, not {kv!r}")
        self.kv = kv
        shapes = [(config.max_seq, a.n_kv_heads, a.head_dim) for a in (layer.mixer for layer in config.layers)]
        self._keys = [np.zeros(shape, dtype=np.float32) for shape in shapes]
        self._values = [np.zeros(shape, dtype=np.float32) for shape in shapes]

    def append(self, layer: int, position: int, k: F32Array, v: F32Array) -> None:
        """Write k and v [T, n_kv_heads, head_dim] at position, position + 1, ..."""
        end = position + k.shape[0]
        self._keys[layer][position:end] = self._round_trip(k)
        self._values[layer][position:end] = self._round_trip(v)

    def read(self, layer: int, end: int) -> tuple[F32Array, F32Array]:
        """Keys and values of positions 0 .. end - 1."""
        return self._keys[layer][:end], self._values[layer][:end]

    def _round_trip(self, x: F32Array) -> F32Array:
        if self.kv == "f32":
            return x
        return quantise(x.reshape(-1, x.shape[-1])).values().reshape(x.shape)
