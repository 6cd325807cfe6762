# SPDX-License-Identifier: Apache-2.0
"""The key-value cache (docs/NUMERICS.md section 7, 2.4)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from colibri.model import ModelConfig
from colibri.numerics import RANGE_BITS

from .fma import F32Array
from .functions import snap
from .products import quantise

KvFormat = Literal["f32", "f16", "q8"]
F16_LIMIT_BITS = 0x477FF000
"""65520: the least magnitude that rounds to an infinity in binary16."""


class KvCache:
    """Keys and values of all layers and positions, as they are read back: float32 [max_seq, n_kv_heads, head_dim]."""

    def __init__(self, config: ModelConfig, kv: KvFormat) -> None:
        if kv not in get_args(KvFormat):
            raise ValueError(f"kv is f32, f16 or q8, not {kv!r}")
        self.kv = kv
        shapes = [(config.max_seq, a.n_kv_heads, a.head_dim) for a in (layer.mixer for layer in config.layers)]
        self._keys = [np.zeros(shape, dtype=np.float32) for shape in shapes]
        self._values = [np.zeros(shape, dtype=np.float32) for shape in shapes]

    @property
    def limit_bits(self) -> int:
        """Bits of the least magnitude that cannot be stored: the range check of k and v."""
        return F16_LIMIT_BITS if self.kv == "f16" else RANGE_BITS

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
        if self.kv == "f16":
            return snap(x.astype(np.float16).astype(np.float32))
        return quantise(x.reshape(-1, x.shape[-1])).values().reshape(x.shape)
