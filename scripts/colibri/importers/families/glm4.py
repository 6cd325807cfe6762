# SPDX-License-Identifier: Apache-2.0
"""GLM-4-MoE: DeepSeek-V3's router on grouped-query attention with half of each head rotated."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Layer, QkNorm
from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import COMMON_DEFAULTS, read_attention, read_head_dim, read_model, read_norm
from colibri.importers.families.deepseek import read_ffns, read_v3_router
from colibri.importers.families.family import Family
from colibri.importers.families.names import LLAMA, bind_decoder, skip_extra_layers
from colibri.importers.limits import MAX_EXTRA_LAYERS
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig


def _config(config: ConfigReader) -> ModelConfig:
    norm = read_norm(config)
    attention = read_attention(
        config,
        read_rope(config, read_head_dim(config), partial=True).rope,
        qkv_bias=config.flag("attention_bias"),
        qk_norm=QkNorm("head", norm) if config.flag("use_qk_norm") else None,
    )
    ffns = read_ffns(config, read_v3_router(config))
    layers = (Layer(attention, ffn, attn_norm=norm, ffn_norm=norm) for ffn in ffns)
    return read_model(config, "glm4_moe", layers, norm)


def _bindings(config: ModelConfig, sources: Sources, reader: ConfigReader) -> Iterator[Binding]:
    yield from bind_decoder(config, sources)
    yield from skip_extra_layers(config, LLAMA, reader.integer("num_nextn_predict_layers", 0, MAX_EXTRA_LAYERS))


FAMILY = Family(
    name="glm4_moe",
    title="GLM-4-MoE",
    architectures=("Glm4MoeForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "vocab_size": 151552,
        "intermediate_size": 10944,
        "num_hidden_layers": 46,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "partial_rotary_factor": 0.5,
        "moe_intermediate_size": 1408,
        "moe_layer_freq": 1,
        "num_experts_per_tok": 8,
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "routed_scaling_factor": 1.0,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "norm_topk_prob": True,
        "use_qk_norm": False,
        "num_nextn_predict_layers": 1,
        "bos_token_id": None,
        "eos_token_id": None,
    },
    config=_config,
    bindings=_bindings,
)
