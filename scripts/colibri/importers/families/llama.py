# SPDX-License-Identifier: Apache-2.0
"""Llama: dense."""

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
    read_n_layers,
    read_norm,
    read_width,
)
from colibri.importers.families.family import Family
from colibri.importers.families.meta import adjacent_in_meta, meta_or
from colibri.importers.families.names import LLAMA, bind_decoder
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig


def _config(config: ConfigReader) -> ModelConfig:
    rope = read_rope(config, read_head_dim(config)).rope
    bias = config.flag("attention_bias")
    attention = read_attention(config, rope, qkv_bias=bias, o_bias=bias)
    ffn = Ffn(read_width(config), read_activation(config), bias=config.flag("mlp_bias"))
    norm = read_norm(config)
    layer = Layer(attention, ffn, attn_norm=norm, ffn_norm=norm)
    return read_model(config, "llama", (layer,) * read_n_layers(config), norm)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, meta_or(LLAMA, sources))


FAMILY = Family(
    name="llama",
    title="Llama",
    architectures=("LlamaForCausalLM", "LLaMAForCausalLM"),
    defaults={
        **COMMON_DEFAULTS,
        "intermediate_size": 11008,
        "max_position_embeddings": 2048,
        "mlp_bias": False,
    },
    config=_config,
    bindings=_bindings,
    adapt=adjacent_in_meta,
)
