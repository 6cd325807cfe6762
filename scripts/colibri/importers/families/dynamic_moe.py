# SPDX-License-Identifier: Apache-2.0
"""Dynamic top-k (Huang et al. 2024): as many experts as it takes for their probabilities to sum to p.

Names and keys are those of the authors' code, whose config.json says `llama`: it is read with ``--family dynamic_moe``.
`num_experts_per_tok`, which that code does not have, is the most that run for a token; null: all.
"""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Ffn, Layer, Router
from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
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
from colibri.importers.families.names import LLAMA, Table, bind_decoder, block
from colibri.importers.limits import MAX_LAYERS, MAX_ROW_ELEMS
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

_TABLE: Table = {
    **LLAMA,
    "attn_norm": "input_norm",
    "ffn_norm": "post_attention_norm",
    "router": "mlp.router",
    **block("ffn", "mlp.mlp"),
}


def _config(config: ConfigReader) -> ModelConfig:
    attention = read_attention(config, read_rope(config, read_head_dim(config)).rope)
    norm, width, activation = read_norm(config), read_width(config), read_activation(config)
    dense, experts = Ffn(width, activation), Ffn(width, activation, router=_router(config))
    frequency = config.integer("expert_frequency", 1, MAX_LAYERS)
    layers = (
        Layer(attention, dense if n % frequency else experts, attn_norm=norm, ffn_norm=norm)
        for n in range(read_n_layers(config))
    )
    return read_model(config, "dynamic_moe", layers, norm)


def _router(config: ConfigReader) -> Router:
    n_experts = config.integer("num_experts", 1, MAX_ROW_ELEMS)
    at_most = config.optional_integer("num_experts_per_tok", 1, n_experts)
    top_p = f32(config.number("top_p_threshold", 2.0**-40, 1.0))
    return Router(n_experts, at_most or n_experts, score="softmax", top_p=top_p, weights="score")


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE)


FAMILY = Family(
    name="dynamic_moe",
    title="dynamic top-k MoE",
    architectures=("MoEForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "intermediate_size": 11008,
        "max_position_embeddings": 2048,
        "num_experts": -1,
        "num_experts_per_tok": None,
        "expert_frequency": 2,
        "top_p_threshold": 0.4,
    },
    config=_config,
    bindings=_bindings,
)
