# SPDX-License-Identifier: Apache-2.0
"""HunYuan-MoE V1: a norm of each head after RoPE, one shared expert, a number of experts for each layer."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Attention, Ffn, Layer, QkNorm, Shared
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
from colibri.importers.families.names import LLAMA, Table, bind_decoder, block
from colibri.importers.families.routing import read_router
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

_TABLE: Table = {
    **LLAMA,
    **block("shared", "mlp.shared_mlp"),
    "attn.q_norm": "self_attn.query_layernorm",
    "attn.k_norm": "self_attn.key_layernorm",
    "router": "mlp.gate.wg",
}


def _config(config: ConfigReader) -> ModelConfig:
    norm, width, activation = read_norm(config), read_width(config), read_activation(config)
    attention = _attention(config)
    layers = (
        Layer(
            attention,
            Ffn(width, activation, router=read_router(_of_layer(config, n)), shared=Shared(width)),
            attn_norm=norm,
            ffn_norm=norm,
        )
        for n in range(read_n_layers(config))
    )
    return read_model(config, "hunyuan_v1_moe", layers, norm)


def _of_layer(config: ConfigReader, n: int) -> ConfigReader:
    """The config with each layer's number of experts, and of chosen ones, in the place of a list of them."""
    for key in ("num_experts", "moe_topk"):
        value = config.get(key)
        if isinstance(value, list):
            if n >= len(value):
                raise config.error(key, f"{read_n_layers(config)} numbers, one a layer", f"{len(value)}")
            config = config.with_value(key, value[n])
    return config


def _attention(config: ConfigReader) -> Attention:
    head_dim, bias = read_head_dim(config), config.flag("attention_bias")
    rope = read_rope(_stretched(config, head_dim), head_dim).rope
    return read_attention(config, rope, qkv_bias=bias, o_bias=bias, qk_norm=QkNorm("head_after", read_norm(config)))


def _stretched(config: ConfigReader, head_dim: int) -> ConfigReader:
    """Type dynamic with a fixed alpha is one table: theta times ``alpha ** (n / (n - 2))``."""
    for name in ("rope_parameters", "rope_scaling"):
        given = config.within(name)
        if given is None or not given.has("alpha") or "dynamic" not in (given.get("type"), given.get("rope_type")):
            continue
        alpha = given.number("alpha", 1.0, 2.0**20)
        holder = given if given.has("rope_theta") else config
        theta = holder.number("rope_theta", 1.0, 2.0**50)
        if head_dim < 4:
            raise config.error("head_dim", "at least 4 with an alpha", str(head_dim))
        plain = {"rope_type": "default", "rope_theta": theta * alpha ** (head_dim / (head_dim - 2))}
        return (
            config.with_value("rope_scaling", None).with_value("rope_theta", None).with_value("rope_parameters", plain)
        )
    return config


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE)


FAMILY = Family(
    name="hunyuan_v1_moe",
    title="HunYuan-MoE V1",
    architectures=("HunYuanMoEV1ForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "vocab_size": 290943,
        "intermediate_size": 11008,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
        "num_experts": 1,
        "moe_topk": 1,
    },
    config=_config,
    bindings=_bindings,
)
