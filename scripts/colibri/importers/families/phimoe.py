# SPDX-License-Identifier: Apache-2.0
"""PhiMoE: LayerNorm, biases, sparsemixer routing, LongRoPE's short table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colibri.axes import Ffn, Layer
from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    f32,
    read_activation,
    read_attention,
    read_head_dim,
    read_model,
    read_norm,
    read_width,
    read_windows,
)
from colibri.importers.families.family import Family
from colibri.importers.families.mixtral import TABLE as MIXTRAL
from colibri.importers.families.names import Table, bind_decoder
from colibri.importers.families.routing import read_router
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

_TABLE: Table = {**MIXTRAL, "router": ("block_sparse_moe.gate", "mlp.router")}


def _config(config: ConfigReader) -> ModelConfig:
    rope = read_rope(config, read_head_dim(config))
    bias = config.flag("attention_bias")
    router = read_router(config, method="sparsemixer", jitter=f32(config.number("router_jitter_noise", 0.0, 1.0)))
    if router.top_k != 2:
        raise config.error("num_experts_per_tok", "2: sparsemixer picks two experts", str(router.top_k))
    ffn = Ffn(read_width(config), read_activation(config), router=router)
    norm = replace(read_norm(config), kind="layer", bias=True)
    layers = (
        Layer(
            read_attention(config, rope.rope, window=window, qkv_bias=bias, o_bias=bias),
            ffn,
            attn_norm=norm,
            ffn_norm=norm,
        )
        for window in read_windows(config, lambda _, window: window is not None)
    )
    return read_model(config, "phimoe", layers, norm, head_bias=config.flag("lm_head_bias"), max_positions=rope.max_seq)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE)


FAMILY = Family(
    name="phimoe",
    title="PhiMoE",
    architectures=("PhimoeForCausalLM", "PhiMoEForCausalLM"),
    defaults={
        **COMMON_DEFAULTS,
        "vocab_size": 32064,
        "intermediate_size": 6400,
        "num_key_value_heads": 8,
        "max_position_embeddings": 4096 * 32,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "num_local_experts": 16,
        "num_experts_per_tok": 2,
        "router_jitter_noise": 0.01,
        "lm_head_bias": False,
    },
    config=_config,
    bindings=_bindings,
)
