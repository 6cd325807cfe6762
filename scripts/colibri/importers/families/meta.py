# SPDX-License-Identifier: Apache-2.0
"""The names of Llama's and Mistral's own files, beside a Hugging Face config.json: rotated pairs are then adjacent."""

from __future__ import annotations

from dataclasses import replace

from colibri.axes import Attention, Layer
from colibri.importers.bind import Sources
from colibri.importers.families.names import Table, block
from colibri.model import ModelConfig

_META: Table = {
    "embed": "tok_embeddings",
    "layers": "layers",
    "final_norm": "norm",
    "head": "output",
    "attn_norm": "attention_norm",
    **{f"attn.{name}": f"attention.w{name}" for name in ("q", "k", "v", "o")},
    "ffn_norm": "ffn_norm",
    **block("ffn", "feed_forward", ("w1", "w3", "w2")),
    "router": "feed_forward.gate",
    "experts": ("feed_forward.experts", "feed_forward"),
}


def meta_or(table: Table, sources: Sources) -> Table:
    """Return the table of these names where the checkpoint has them, otherwise `table`."""
    return _META if _is_meta(sources) else table


def adjacent_in_meta(config: ModelConfig, sources: Sources) -> ModelConfig:
    """Return the axes with adjacent pairs where the checkpoint has these names: q and k were not permuted for the halves."""
    if not _is_meta(sources):
        return config
    turned = {layer: _adjacent(layer) for layer in set(config.layers)}
    return replace(config, layers=tuple(turned[layer] for layer in config.layers))


def _is_meta(sources: Sources) -> bool:
    return f"{_META['embed']}.weight" in sources


def _adjacent(layer: Layer) -> Layer:
    a = layer.mixer
    if not isinstance(a, Attention) or a.rope is None:
        return layer
    return replace(layer, mixer=replace(a, rope=replace(a.rope, pairing="adjacent")))
