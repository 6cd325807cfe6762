# SPDX-License-Identifier: Apache-2.0
"""Granite-MoE: factors on embedding, residual, attention and logits; experts stacked under their own names."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Ffn, Layer, Shared
from colibri.importers.bind import Binding, Part, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.blocks import bind_stacked, halves
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    f32,
    read_activation,
    read_attention,
    read_head_dim,
    read_model,
    read_n_layers,
    read_norm,
    read_width,
)
from colibri.importers.families.family import Family
from colibri.importers.families.names import LLAMA, Table, bind_decoder
from colibri.importers.families.routing import read_router
from colibri.importers.limits import MAX_ROW_ELEMS, MAX_SCALE
from colibri.importers.rope_config import read_rope
from colibri.importers.strict_json import Json
from colibri.model import ModelConfig

_TABLE: Table = {
    **LLAMA,
    "router": "block_sparse_moe.router.layer",
    "experts": "block_sparse_moe.experts",
    "shared.down": "shared_mlp.output_linear",
}


def _factor(config: ConfigReader, key: str) -> float:
    return config.number(key, 2.0**-40, MAX_SCALE)


def _model(config: ConfigReader, family: str, shared: Shared | None) -> ModelConfig:
    rope = read_rope(config, read_head_dim(config)).rope
    bias = config.flag("attention_bias")
    attention = read_attention(config, rope, scale=_factor(config, "attention_multiplier"), qkv_bias=bias, o_bias=bias)
    ffn = Ffn(read_width(config), read_activation(config), router=read_router(config), shared=shared)
    norm, residual = read_norm(config), f32(_factor(config, "residual_multiplier"))
    layer = Layer(attention, ffn, attn_norm=norm, ffn_norm=norm, residual=residual)
    return read_model(
        config,
        family,
        (layer,) * read_n_layers(config),
        norm,
        embedding_scale=f32(_factor(config, "embedding_multiplier")),
        logits_scale=f32(1.0 / _factor(config, "logits_scaling")),
    )


def _plain(config: ConfigReader) -> ModelConfig:
    return _model(config, "granitemoe", None)


def _shared(config: ConfigReader) -> ModelConfig:
    width = config.integer("shared_intermediate_size", 0, MAX_ROW_ELEMS)
    return _model(config, "granitemoeshared", Shared(width) if width else None)


def _parts(config: ModelConfig, n: int, prefix: str, sources: Sources) -> Iterator[Part]:
    moe = f"{prefix}block_sparse_moe."
    if f"{moe}experts.gate_up_proj" not in sources:  # the names transformers 5 has in memory
        yield from bind_stacked(config, n, f"{moe}input_linear.weight", f"{moe}output_linear.weight")
    shared, h = config.layers[n].ffn.shared, config.hidden_size
    if shared is not None:
        both = (f"{prefix}shared_mlp.input_linear.weight", (2 * shared.width, h))
        for part, rows in zip(("gate", "up"), halves(shared.width), strict=True):
            yield Part(f"layers.{n}.shared.{part}.weight", *both, (rows,))


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE, _parts)


_DEFAULTS: dict[str, Json] = {
    **COMMON_DEFAULTS,
    "intermediate_size": 11008,
    "max_position_embeddings": 2048,
    "embedding_multiplier": 1.0,
    "logits_scaling": 1.0,
    "residual_multiplier": 1.0,
    "attention_multiplier": 1.0,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}

PLAIN = Family("granitemoe", "Granite-MoE", ("GraniteMoeForCausalLM",), _DEFAULTS, _plain, _bindings)
SHARED = Family(
    "granitemoeshared",
    "Granite-MoE-Shared",
    ("GraniteMoeSharedForCausalLM",),
    {**_DEFAULTS, "shared_intermediate_size": 0},
    _shared,
    _bindings,
)
