# SPDX-License-Identifier: Apache-2.0
"""Where each layer's keys, values and convolution inputs lie in the state's caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from colibri.axes import Attention, Convolution, LatentAttention, Mixer
from colibri.model import ModelConfig

Kv = Literal["f32", "f16", "q8"]


class Cached(NamedTuple):
    """Elements in each of the caches. scales: of a q8 cache, one a KV head; conv is float32 whatever the format."""

    k: int = 0
    v: int = 0
    k_scale: int = 0
    v_scale: int = 0
    conv: int = 0


@dataclass(frozen=True)
class CacheLayout:
    """starts: the first element of each layer; total: elements of each cache."""

    starts: tuple[Cached, ...]
    total: Cached

    def bytes(self, kv: Kv) -> int:
        """Bytes of all caches in a format."""
        n, t = self.total.k + self.total.v, self.total
        return 4 * t.conv + {"f32": 4 * n, "f16": 2 * n, "q8": n + 4 * (t.k_scale + t.v_scale)}[kv]


def cache_layout(config: ModelConfig) -> CacheLayout:
    """The caches of a model: layer by layer, position by position. The layers of an encoder take turns in the same place."""
    source = config.encoder.max_source if config.encoder else 0
    starts = [Cached()] * config.n_encoder
    in_turn = [_of_position(layer.mixer, config.hidden_size) for layer in config.layers[: config.n_encoder]]
    total = Cached(*(source * max(column) for column in zip(*in_turn, strict=True)))
    for layer in config.layers[config.n_encoder :]:
        starts.append(total)
        row = _of_position(layer.mixer, config.hidden_size)
        over_past = not isinstance(layer.mixer, Attention) or layer.mixer.over == "past"
        n_positions = config.max_seq if over_past else source
        total = Cached(*(start + n_positions * n for start, n in zip(total, row, strict=True)))
    return CacheLayout(tuple(starts), total)


def _of_position(mixer: Mixer, hidden: int) -> Cached:
    match mixer:
        case Attention():
            n = mixer.n_kv_heads * mixer.head_dim
            return Cached(n, n, mixer.n_kv_heads, mixer.n_kv_heads)
        case LatentAttention():
            return Cached(k=mixer.kv_rank + mixer.rope_dim, k_scale=1)
        case Convolution():
            return Cached(conv=hidden)
