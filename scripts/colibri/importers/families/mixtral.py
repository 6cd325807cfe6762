# SPDX-License-Identifier: Apache-2.0
"""Mixtral: every feed-forward is a mixture of experts; softmax over the chosen ones."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Ffn, Layer
from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    read_activation,
    read_attention,
    read_head_dim,
    read_model,
    read_norm,
    read_width,
    read_windows,
)
from colibri.importers.families.family import Family
from colibri.importers.families.meta import adjacent_in_meta, meta_or
from colibri.importers.families.names import LLAMA, Table, bind_decoder
from colibri.importers.families.routing import read_router
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

TABLE: Table = {  # as published, and as transformers 5 calls it in memory
    **LLAMA,
    "router": ("block_sparse_moe.gate", "mlp.gate", "feed_forward.gate"),
    "experts": ("block_sparse_moe.experts", "mlp.experts", "feed_forward.experts", "feed_forward"),
}


def _config(config: ConfigReader) -> ModelConfig:
    rope = read_rope(config, read_head_dim(config)).rope
    ffn = Ffn(read_width(config), read_activation(config), router=read_router(config))
    norm = read_norm(config)
    windows = read_windows(config, lambda _, window: window is not None)
    layers = (Layer(read_attention(config, rope, window=w), ffn, attn_norm=norm, ffn_norm=norm) for w in windows)
    return read_model(config, "mixtral", layers, norm)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, meta_or(TABLE, sources))


FAMILY = Family(
    name="mixtral",
    title="Mixtral",
    architectures=("MixtralForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
        "max_position_embeddings": 4096 * 32,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
    config=_config,
    bindings=_bindings,
    adapt=adjacent_in_meta,
)
