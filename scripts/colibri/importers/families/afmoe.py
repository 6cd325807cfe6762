# SPDX-License-Identifier: Apache-2.0
"""AfMoE (Trinity): norms before and after each sublayer, gated attention, RoPE in the sliding layers alone."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Ffn, Layer, QkNorm
from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    f32,
    read_activation,
    read_attention,
    read_head_dim,
    read_hidden,
    read_model,
    read_norm,
    read_width,
    read_windows,
)
from colibri.importers.families.family import Family
from colibri.importers.families.names import LLAMA, Table, bind_decoder
from colibri.importers.families.routing import SUM, first_dense, read_router, read_scale, read_shared
from colibri.importers.limits import MAX_LAYERS
from colibri.importers.rope_config import read_rope
from colibri.importers.text import described
from colibri.model import ModelConfig

_TABLE: Table = {
    **LLAMA,
    "attn.gate": "self_attn.gate_proj",
    "attn_post_norm": "post_attention_layernorm",
    "ffn_norm": "pre_mlp_layernorm",
    "ffn_post_norm": "post_mlp_layernorm",
    "router": "mlp.router.gate",
    "router.correction": "mlp.expert_bias",
}
# What the published files say of the router, and the one value the framework implements.
_FIXED = {"score_func": "sigmoid", "route_norm": True, "n_group": 1, "topk_group": 1}


def _config(config: ConfigReader) -> ModelConfig:
    for key, value in _FIXED.items():
        if config.has(key) and config.get(key) != value:
            raise config.error(key, described(value), hint="this variant is not supported")
    norm, activation = read_norm(config), read_activation(config)
    bias, rope = config.flag("attention_bias"), read_rope(config, read_head_dim(config)).rope
    width = read_width(config, "moe_intermediate_size")
    router = read_router(
        config,
        score="sigmoid",
        correction=True,
        weights="score",
        renormalise=SUM,
        scale=read_scale(config, "route_scale"),
    )
    sparse = Ffn(width, activation, router=router, shared=read_shared(config, width, "num_shared_experts"))
    dense = Ffn(read_width(config), activation)
    every, n_dense = (
        config.integer("global_attn_every_n_layers", 1, MAX_LAYERS),
        first_dense(config, "num_dense_layers"),
    )
    layers = (
        Layer(
            read_attention(
                config,
                None if window is None else rope,
                window=window,
                qkv_bias=bias,
                o_bias=bias,
                qk_norm=QkNorm("head", norm),
                gate=True,
            ),
            dense if n < n_dense else sparse,
            attn_norm=norm,
            ffn_norm=norm,
            attn_post_norm=norm,
            ffn_post_norm=norm,
        )
        for n, window in enumerate(read_windows(config, lambda n, _: (n + 1) % every != 0))
    )
    scale = f32(read_hidden(config) ** 0.5) if config.flag("mup_enabled") else 1.0
    return read_model(config, "afmoe", layers, norm, embedding_scale=scale)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE)


FAMILY = Family(
    name="afmoe",
    title="AfMoE (Trinity)",
    architectures=("AfmoeForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "vocab_size": 200192,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "moe_intermediate_size": 1408,
        "num_dense_layers": 1,
        "num_attention_heads": 16,
        "head_dim": 128,
        "max_position_embeddings": 16384,
        "rms_norm_eps": 1e-5,
        "num_experts": 64,
        "num_experts_per_tok": 6,
        "num_shared_experts": 2,
        "route_scale": 1.0,
        "global_attn_every_n_layers": 4,
        "sliding_window": 1024,
        "mup_enabled": False,
        "bos_token_id": None,
        "eos_token_id": None,
    },
    config=_config,
    bindings=_bindings,
)
