# SPDX-License-Identifier: Apache-2.0
"""Statics of the applications that grow with the model: exact, and apart from what linker/budgets.toml bounds."""

from __future__ import annotations

from colibri.axes import Attention, Convolution, LatentAttention, Layer
from colibri.model import ModelConfig

_WORD_BYTES = 4


def app_array_bytes(config: ModelConfig) -> dict[str, int]:
    """Bytes by application: `verify` and `bench` hold a prompt's ids, `verify` a CRC-32 of each tensor of the trace too.

    With an encoder `bench` and `generate` have the source where the logits will be, or the ids; `verify` needs both twice.
    What `text` holds is a part of the plan by itself (colibri.layout.text).
    """
    source = config.encoder.max_source if config.encoder else 0
    ids = _WORD_BYTES * (config.max_seq + source)
    crcs = _WORD_BYTES * max(trace_tensors(config), source_trace_tensors(config))
    return {"generate": _WORD_BYTES * source, "text": 0, "verify": ids + crcs, "bench": ids}


def trace_tensors(config: ModelConfig) -> int:
    """Tensors that the verify application sends for each position (docs/DESIGN.md 4)."""
    return 3 + sum(_mixer_tensors(layer) + _ffn_tensors(layer) for layer in config.layers[config.n_encoder :])


def source_trace_tensors(config: ModelConfig) -> int:
    """Tensors that it sends for a source; 0: there is no encoder."""
    if config.encoder is None:
        return 0
    crossing = sum(isinstance(a := layer.mixer, Attention) and a.over == "encoded" for layer in config.layers)
    layers = config.layers[: config.n_encoder]
    return 2 + sum(_mixer_tensors(layer) + _ffn_tensors(layer) for layer in layers) + 3 * crossing


def _mixer_tensors(layer: Layer) -> int:
    norms = (layer.attn_norm is not None) + (layer.attn_post_norm is not None)
    match m := layer.mixer:
        case Attention(over="encoded"):
            n = 4 + m.gate
        case Attention():
            n = 7 + m.gate + 3 * (m.router is not None)
        case LatentAttention():
            n = 7 + (m.q_rank is not None)
        case Convolution():
            n = 3
    return norms + n + 1


def _ffn_tensors(layer: Layer) -> int:
    norms = (layer.ffn_norm is not None) + (layer.ffn_post_norm is not None)
    f = layer.ffn
    if f.width == 0:
        return 0
    n_slots = f.router.top_k + (f.shared is not None) if f.router else 1
    return norms + 3 * (f.router is not None) + n_slots * (3 + f.gated) + 1
