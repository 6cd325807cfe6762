# SPDX-License-Identifier: Apache-2.0
"""Statics of the applications that grow with the model: exact, and apart from what linker/budgets.toml bounds."""

from __future__ import annotations

from colibri.model import ModelConfig

_WORD_BYTES = 4


def app_array_bytes(config: ModelConfig) -> dict[str, int]:
    """Bytes by application: `verify` and `bench` hold a prompt's ids, `verify` a CRC-32 of each tensor of the trace too."""
    ids = _WORD_BYTES * config.max_seq
    return {"generate": 0, "verify": ids + _WORD_BYTES * trace_tensors(config), "bench": ids}


def trace_tensors(config: ModelConfig) -> int:
    """Tensors that `verify` traces at a position (docs/DESIGN.md 4)."""
    count = 3  # embed, final_norm, logits
    for layer in config.layers:
        router = layer.ffn.router
        count += 11 + 4 * router.top_k + 3 if router else 11 + 4
    return count
