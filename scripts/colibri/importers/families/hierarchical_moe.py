# SPDX-License-Identifier: Apache-2.0
"""Hierarchical mixture of experts (Shazeer et al. 2017, appendix B) in a Llama's body.

No framework ships it, so the names are Colibri's: ``mlp.gate.primary.weight [G, H]``; ``mlp.gate.secondary.weight [E, H]``, group
by group; expert J of group I is ``mlp.experts.{I * E/G + J}.up_proj.weight``, ``down_proj`` and, with `gated_experts`,
``gate_proj``.
"""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Ffn, Hierarchy, Layer, Router
from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.blocks import bind_apart
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
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
from colibri.importers.limits import MAX_ROW_ELEMS
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

_TABLE: Table = {**LLAMA, "router.primary": "mlp.gate.primary", "router": "mlp.gate.secondary"}


def _config(config: ConfigReader) -> ModelConfig:
    attention = read_attention(config, read_rope(config, read_head_dim(config)).rope)
    norm = read_norm(config)
    ffn = Ffn(read_width(config), read_activation(config), gated=config.flag("gated_experts"), router=_router(config))
    layer = Layer(attention, ffn, attn_norm=norm, ffn_norm=norm)
    return read_model(config, "hierarchical_moe", (layer,) * read_n_layers(config), norm)


def _router(config: ConfigReader) -> Router:
    n_groups = config.integer("num_groups", 1, MAX_ROW_ELEMS)
    size = config.integer("num_experts_per_group", 1, MAX_ROW_ELEMS // n_groups)
    top_groups = config.integer("num_groups_per_tok", 1, n_groups)
    top_k = config.integer("num_experts_per_group_per_tok", 1, size)
    return Router(n_groups * size, top_groups * top_k, hierarchy=Hierarchy(n_groups, top_groups))


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE, bind_apart)


FAMILY = Family(
    name="hierarchical_moe",
    title="Hierarchical MoE",
    architectures=("HierarchicalMoeForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "intermediate_size": 1024,
        "max_position_embeddings": 2048,
        "hidden_act": "relu",
        "num_groups": 16,
        "num_experts_per_group": 16,
        "num_groups_per_tok": 2,
        "num_experts_per_group_per_tok": 2,
        "gated_experts": False,
    },
    config=_config,
    bindings=_bindings,
)
