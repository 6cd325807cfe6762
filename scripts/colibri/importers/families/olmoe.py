# SPDX-License-Identifier: Apache-2.0
"""OLMoE and FlexOlmo: a norm over the whole query and key; FlexOlmo norms after each sublayer, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colibri.axes import Attention, Ffn, Layer, QkNorm
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
from colibri.importers.families.names import LLAMA, Table, bind_decoder
from colibri.importers.families.routing import read_renormalise, read_router
from colibri.importers.limits import MAX_SCALE
from colibri.importers.rope_config import read_rope
from colibri.importers.strict_json import Json
from colibri.model import ModelConfig

_FLEX_TABLE: Table = {
    **LLAMA,
    "attn_post_norm": "post_attention_layernorm",
    "ffn_post_norm": "post_feedforward_layernorm",
}


def _attention(config: ConfigReader) -> Attention:
    rope = read_rope(config, read_head_dim(config)).rope
    bias = config.flag("attention_bias")
    return read_attention(config, rope, qkv_bias=bias, o_bias=bias, qk_norm=QkNorm("vector", read_norm(config)))


def _ffn(config: ConfigReader) -> Ffn:
    router = read_router(config, score="softmax", weights="score", renormalise=read_renormalise(config))
    return Ffn(read_width(config), read_activation(config), router=router)


def _olmoe(config: ConfigReader) -> ModelConfig:
    norm, clip = read_norm(config), None
    if config.get("clip_qkv") is not None:
        clip = f32(config.number("clip_qkv", 2.0**-40, MAX_SCALE))
    layer = Layer(replace(_attention(config), clip=clip), _ffn(config), attn_norm=norm, ffn_norm=norm)
    return read_model(config, "olmoe", (layer,) * read_n_layers(config), norm)


def _flex_olmo(config: ConfigReader) -> ModelConfig:
    norm = read_norm(config)
    layer = Layer(_attention(config), _ffn(config), None, None, attn_post_norm=norm, ffn_post_norm=norm)
    return read_model(config, "flex_olmo", (layer,) * read_n_layers(config), norm)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources)


def _flex_bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _FLEX_TABLE)


_DEFAULTS: dict[str, Json] = {
    **COMMON_DEFAULTS,
    "max_position_embeddings": 4096,
    "bos_token_id": None,
    "norm_topk_prob": False,
}

OLMOE = Family(
    name="olmoe",
    title="OLMoE",
    architectures=("OlmoeForCausalLM",),
    defaults={
        **_DEFAULTS,
        "vocab_size": 50304,
        "hidden_size": 2048,
        "intermediate_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 16,
        "rms_norm_eps": 1e-5,
        "eos_token_id": 50279,
        "num_experts_per_tok": 8,
        "num_experts": 64,
    },
    config=_olmoe,
    bindings=_bindings,
)
FLEX_OLMO = Family(
    name="flex_olmo",
    title="FlexOlmo",
    architectures=("FlexOlmoForCausalLM",),
    defaults={
        **_DEFAULTS,
        "vocab_size": 100352,
        "intermediate_size": 11008,
        "rope_theta": 500000.0,
        "eos_token_id": 100257,
        "num_experts_per_tok": 5,
        "num_experts": 7,
    },
    config=_flex_olmo,
    bindings=_flex_bindings,
)
