# SPDX-License-Identifier: Apache-2.0
"""MiniMax-M2: sigmoid scores with a correction, a norm over the whole query and key, a part of each head rotated."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Ffn, Layer, QkNorm
from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
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
from colibri.importers.families.mixtral import TABLE as MIXTRAL
from colibri.importers.families.names import Table, bind_decoder
from colibri.importers.families.routing import SUM, read_router
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

_TABLE: Table = {
    **MIXTRAL,
    "router.correction": ("block_sparse_moe.e_score_correction_bias", "mlp.e_score_correction_bias"),
}


def _config(config: ConfigReader) -> ModelConfig:
    head_dim = read_head_dim(config)
    if config.has("rotary_dim"):  # the published files' word
        rotary_dim = config.integer("rotary_dim", 2, head_dim)
        stated = config.with_value("partial_rotary_factor", rotary_dim / head_dim)
    else:
        stated = config
    norm = read_norm(config)
    attention = read_attention(config, read_rope(stated, head_dim, partial=True).rope, qk_norm=QkNorm("vector", norm))
    router = read_router(config, score="sigmoid", correction=True, weights="score", renormalise=SUM)
    ffn = Ffn(read_width(config), read_activation(config), router=router)
    layer = Layer(attention, ffn, attn_norm=norm, ffn_norm=norm)
    return read_model(config, "minimax_m2", (layer,) * read_n_layers(config), norm)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE)


FAMILY = Family(
    name="minimax_m2",
    title="MiniMax-M2",
    architectures=("MiniMaxM2ForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "vocab_size": 200064,
        "hidden_size": 3072,
        "intermediate_size": 1536,
        "num_hidden_layers": 62,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 196608,
        "rope_theta": 5000000.0,
        "num_local_experts": 256,
        "num_experts_per_tok": 8,
        "bos_token_id": 200034,
        "eos_token_id": 200020,
    },
    config=_config,
    bindings=_bindings,
)
