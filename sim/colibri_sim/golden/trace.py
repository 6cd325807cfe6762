# SPDX-License-Identifier: Apache-2.0
"""The tensors that a forward step shows to the outside, in the order of docs/DESIGN.md section 4."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from colibri.axes import Attention, Convolution, Ffn, LatentAttention, Layer, Mixer
from colibri.model import ModelConfig

Values = npt.NDArray[Any]


class TraceName(NamedTuple):
    """One trace tensor: layer None outside the layers; slot j of the chosen experts, 0 for a dense block, else None."""

    layer: int | None
    tensor: str
    slot: int | None


class TraceSink(Protocol):
    """Receives every tensor of a forward pass."""

    def put(self, name: TraceName, position: int, values: Values) -> None:
        """Take one position's vector: float32 (expert_ids: int32), one axis. The same bits may come twice."""


def trace_names(config: ModelConfig) -> list[TraceName]:
    """All tensors of one position of the sequence, in stage order, layers and slots unrolled."""
    names = [TraceName(None, "embed", None)]
    for n, layer in enumerate(config.layers[config.n_encoder :], config.n_encoder):
        names += [TraceName(n, tensor, slot) for tensor, slot in _layer_names(layer)]
    return [*names, TraceName(None, "final_norm", None), TraceName(None, "logits", None)]


def source_trace_names(config: ModelConfig) -> list[TraceName]:
    """All tensors of the encoder, in stage order: in a layer keys and values come first; at the end cross-attention's."""
    if config.encoder is None:
        return []
    names = [TraceName(None, "embed", None)]
    for n, layer in enumerate(config.layers[: config.n_encoder]):
        names += [TraceName(n, tensor, slot) for tensor, slot in _layer_names(layer)]
    names.append(TraceName(None, "encoder_norm", None))
    for n, layer in enumerate(config.layers):
        if isinstance(layer.mixer, Attention) and layer.mixer.over == "encoded":
            names += [TraceName(n, tensor, None) for tensor in _KEYS]
    return names


_KEYS = ("k", "v", "k_rope")


def _layer_names(layer: Layer) -> Iterator[tuple[str, int | None]]:
    for norm in ("attn_norm", "attn_post_norm", "ffn_norm", "ffn_post_norm"):
        if norm == "attn_post_norm":
            yield from ((tensor, None) for tensor in _mixer_names(layer.mixer))
        if norm == "ffn_norm" and layer.ffn.width == 0:
            return
        if norm == "ffn_post_norm":
            yield from _ffn_names(layer.ffn)
        if getattr(layer, norm) is not None:
            yield norm, None
        if norm.endswith("post_norm"):
            yield norm.replace("post_norm", "residual"), None


def _mixer_names(mixer: Mixer) -> list[str]:
    match mixer:
        case Attention(over="source" | "encoded"):
            keys = _KEYS if mixer.over == "source" else ()
            return [*keys, "q", "q_rope", "attn", *["attn_gate"] * mixer.gate, "attn_out"]
        case Attention():
            routed = ["attn_router", "attn_expert_ids", "attn_expert_weights"] if mixer.router is not None else []
            return [*routed, "q", "k", "v", "q_rope", "k_rope", "attn", *["attn_gate"] * mixer.gate, "attn_out"]
        case LatentAttention():
            low_rank = ["q_a"] if mixer.q_rank is not None else []
            return [*low_rank, "q", "kv_a", "q_rope", "k_rope", "attn", "v_up", "attn_out"]
        case Convolution():
            return ["conv_in", "conv", "attn_out"]


def _ffn_names(ffn: Ffn) -> Iterator[tuple[str, int | None]]:
    slots = 1
    if ffn.router is not None:
        yield from ((tensor, None) for tensor in ("router", "expert_ids", "expert_weights"))
        slots = ffn.router.top_k + (ffn.shared is not None)
    for slot in range(slots):
        yield from ((tensor, slot) for tensor in ("gate", "up", "act", "down")[not ffn.gated :])


def crc32(values: Values, before: int = 0) -> int:
    """CRC-32 (zlib) of the little-endian bytes, continued from that of the bytes before."""
    return zlib.crc32(np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False)).tobytes(), before)


class SourceRecorder:
    """A sink of the encoder's tensors: of each the CRC-32 of all tokens' vectors, one after the other.

    names   what is recorded, in order
    values  of each the vectors by token, where they are kept
    """

    def __init__(self, config: ModelConfig, *, keep: bool = False) -> None:
        self.names = source_trace_names(config)
        self._crcs = dict.fromkeys(self.names, 0)
        self._keep = keep
        self.values: dict[TraceName, list[Values]] = {name: [] for name in self.names}

    def put(self, name: TraceName, position: int, values: Values) -> None:
        """Record one vector; tokens come in order."""
        self._crcs[name] = crc32(values, self._crcs[name])
        if self._keep:
            self.values[name].append(values.copy())

    @property
    def crcs(self) -> list[int]:
        """CRC-32 of each tensor, in the order of `names`."""
        return [self._crcs[name] for name in self.names]


class TraceRecorder:
    """A sink that keeps the CRC-32 of every tensor, and the values of chosen positions.

    names   what is recorded, in order
    keep    positions whose values are kept; None: all
    """

    def __init__(self, config: ModelConfig, keep: frozenset[int] | set[int] | None = frozenset()) -> None:
        self.names = trace_names(config)
        self._index = {name: i for i, name in enumerate(self.names)}
        self._keep = keep
        self._crcs: dict[int, list[int | None]] = {}
        self._values: dict[int, dict[TraceName, Values]] = {}

    def put(self, name: TraceName, position: int, values: Values) -> None:
        """Record one vector."""
        self._crcs.setdefault(position, [None] * len(self.names))[self._index[name]] = crc32(values)
        if self._keep is None or position in self._keep:
            self._values.setdefault(position, {})[name] = values.copy()

    @property
    def positions(self) -> list[int]:
        """The positions of which something was recorded, rising."""
        return sorted(self._crcs)

    def crcs(self, position: int) -> list[int | None]:
        """CRC-32 of each tensor, in the order of `names`; None: not computed (no logits wanted, or a failed step)."""
        return list(self._crcs[position])

    def values(self, position: int) -> dict[TraceName, Values]:
        """The tensors of a kept position."""
        return dict(self._values[position])
