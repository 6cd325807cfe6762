# SPDX-License-Identifier: Apache-2.0
"""Statics of the applications that grow with the model: exact, and apart from what linker/budgets.toml bounds."""

from __future__ import annotations

from colibri.axes import Attention, Convolution, LatentAttention, Layer
from colibri.model import ModelConfig

_WORD_BYTES = 4


def app_array_bytes(config: ModelConfig) -> dict[str, int]:
    """Bytes by application: `verify` and `bench` hold a prompt's ids, `verify` a CRC-32 of each tensor of the trace too.

    What `text` holds is a part of the plan by itself (colibri.layout.text).
    """
    ids = _WORD_BYTES * config.max_seq
    return {"generate": 0, "text": 0, "verify": ids + _WORD_BYTES * trace_tensors(config), "bench": ids}


def trace_tensors(config: ModelConfig) -> int:
    """Tensors that the verify application sends for each position (docs/DESIGN.md 4)."""
    return 3 + sum(_mixer_tensors(layer) + _ffn_tensors(layer) for layer in config.layers)


def _mixer_tensors(layer: Layer) -> int:
    norms = (layer.attn_norm is not None) + (layer.attn_post_norm is not None)
    match m := layer.mixer:
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
    n_slots = f.router.top_k + (f.shared is not None) if f.router else 1
    return norms + 3 * (f.router is not None) + n_slots * (3 + f.gated) + 1
