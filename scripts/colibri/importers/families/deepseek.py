# SPDX-License-Identifier: Apache-2.0
"""DeepSeek: a few dense layers, then many small experts and shared ones. V1 attends as Llama, V2 and V3 through latents."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Ffn, Layer, Renormalise, Router
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
from colibri.importers.families.latent import LATENT_TABLE, bind_latent, read_latent
from colibri.importers.families.names import LLAMA, bind_decoder, skip_extra_layers
from colibri.importers.families.routing import (
    first_dense,
    read_groups,
    read_renormalise,
    read_router,
    read_scale,
    read_shared,
)
from colibri.importers.limits import MAX_EXTRA_LAYERS, MAX_LAYERS
from colibri.importers.rope_config import read_rope
from colibri.importers.strict_json import Json
from colibri.importers.text import described
from colibri.model import ModelConfig


def read_ffns(config: ConfigReader, router: Router) -> list[Ffn]:
    """Return each layer's feed-forward: the first are dense, then every moe_layer_freq-th has experts."""
    activation = read_activation(config)
    first, step = first_dense(config), config.integer("moe_layer_freq", 1, MAX_LAYERS)
    width = read_width(config, "moe_intermediate_size")
    sparse = Ffn(width, activation, router=router, shared=read_shared(config, width, "n_shared_experts"))
    is_sparse = [n >= first and n % step == 0 for n in range(read_n_layers(config))]
    dense = None if all(is_sparse) else Ffn(read_width(config), activation)
    return [sparse if here or dense is None else dense for here in is_sparse]


def require(config: ConfigReader, key: str, *allowed: str) -> str:
    """Return the text under `key`; raises CheckpointError where it is none of `allowed`."""
    value = config.text(key)
    if value not in allowed:
        raise config.error(
            key, " or ".join(repr(a) for a in allowed), described(value), "this variant is not supported"
        )
    return value


def _v1(config: ConfigReader) -> ModelConfig:
    require(config, "scoring_func", "softmax")
    rope = read_rope(config, read_head_dim(config)).rope
    bias, norm = config.flag("attention_bias"), read_norm(config)
    attention = read_attention(config, rope, qkv_bias=bias, o_bias=bias)
    router = read_router(config, score="softmax", weights="score", renormalise=_if_several(config))
    layers = (Layer(attention, ffn, attn_norm=norm, ffn_norm=norm) for ffn in read_ffns(config, router))
    return read_model(config, "deepseek", layers, norm)


def _if_several(config: ConfigReader) -> Renormalise | None:
    """The published code divides only where several experts are chosen."""
    return read_renormalise(config) if read_router(config).top_k > 1 else None


def _v2(config: ConfigReader) -> ModelConfig:
    require(config, "scoring_func", "softmax")
    if config.flag("norm_topk_prob"):
        raise config.error(
            "norm_topk_prob",
            "false",
            hint="the framework ignores this key and the published code divides by the sum: they are different models",
        )
    size = read_router(config)
    groups = None
    if require(config, "topk_method", "greedy", "group_limited_greedy") == "group_limited_greedy":
        groups = read_groups(config, size.n_experts, size.top_k, score="max", fill="zero")
    router = read_router(config, score="softmax", weights="score", groups=groups, scale=read_scale(config))
    return _latent(config, "deepseek_v2", router, adjacent=True)


def _v3(config: ConfigReader) -> ModelConfig:
    require(config, "scoring_func", "sigmoid")
    require(config, "topk_method", "noaux_tc")
    return _latent(config, "deepseek_v3", read_v3_router(config), adjacent=config.flag("rope_interleave"))


def read_v3_router(config: ConfigReader) -> Router:
    """Return DeepSeek-V3's router: sigmoid scores, a correction for the choice alone, groups by the sum of their two best."""
    size = read_router(config)
    return read_router(
        config,
        score="sigmoid",
        correction=True,
        groups=read_groups(config, size.n_experts, size.top_k, score="top2", fill="excluded"),
        weights="score",
        renormalise=read_renormalise(config),
        scale=read_scale(config),
    )


def _latent(config: ConfigReader, family: str, router: Router, *, adjacent: bool) -> ModelConfig:
    mixer, norm = read_latent(config, "adjacent" if adjacent else "half"), read_norm(config)
    layers = (Layer(mixer, ffn, attn_norm=norm, ffn_norm=norm) for ffn in read_ffns(config, router))
    return read_model(config, family, layers, norm)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, LLAMA)


def _latent_bindings(config: ModelConfig, sources: Sources, reader: ConfigReader) -> Iterator[Binding]:
    yield from bind_decoder(config, sources, LATENT_TABLE, bind_latent)
    yield from skip_extra_layers(config, LATENT_TABLE, reader.integer("num_nextn_predict_layers", 0, MAX_EXTRA_LAYERS))


_DEFAULTS: dict[str, Json] = {
    **COMMON_DEFAULTS,
    "vocab_size": 102400,
    "intermediate_size": 11008,
    "max_position_embeddings": 2048,
    "moe_layer_freq": 1,
    "first_k_dense_replace": 0,
    "scoring_func": "softmax",
    "norm_topk_prob": False,
    "num_nextn_predict_layers": 0,
}

V1 = Family(
    name="deepseek",
    title="DeepSeek-MoE (V1)",
    architectures=("DeepseekForCausalLM",),
    defaults={
        **_DEFAULTS,
        "num_key_value_heads": 32,
        "moe_intermediate_size": 1407,
        "n_shared_experts": None,
        "bos_token_id": 100000,
        "eos_token_id": 100001,
    },
    config=_v1,
    bindings=_bindings,
)
V2 = Family(
    name="deepseek_v2",
    title="DeepSeek-V2, V2-Lite",
    architectures=("DeepseekV2ForCausalLM",),
    defaults={
        **_DEFAULTS,
        "moe_intermediate_size": 1407,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "routed_scaling_factor": 1.0,
        "topk_method": "greedy",
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
    },
    config=_v2,
    bindings=_latent_bindings,
)
V3 = Family(
    name="deepseek_v3",
    title="DeepSeek-V3, R1",
    architectures=("DeepseekV3ForCausalLM",),
    defaults={
        **_DEFAULTS,
        "vocab_size": 129280,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "max_position_embeddings": 4096,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "n_group": 8,
        "topk_group": 4,
        "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "norm_topk_prob": True,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "rope_interleave": True,
        "num_nextn_predict_layers": 1,
        "bos_token_id": 0,
        "eos_token_id": 1,
    },
    config=_v3,
    bindings=_latent_bindings,
)
