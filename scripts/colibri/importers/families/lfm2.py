# SPDX-License-Identifier: Apache-2.0
"""LFM2-MoE: short convolutions, and attention in a few layers."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Convolution, Ffn, Layer, Mixer, QkNorm, Renormalise
from colibri.importers.bind import Binding, Part, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    f32,
    read_attention,
    read_head_dim,
    read_kinds,
    read_model,
    read_n_layers,
    read_norm,
    read_width,
)
from colibri.importers.families.family import Family
from colibri.importers.families.names import LLAMA, Table, bind_decoder, block
from colibri.importers.families.routing import first_dense, read_renormalise, read_router, read_scale
from colibri.importers.limits import MAX_TAPS
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

_TABLE: Table = {
    **LLAMA,
    **block("ffn", "feed_forward", ("w1", "w3", "w2")),
    "final_norm": "model.embedding_norm",
    "attn_norm": "operator_norm",
    "ffn_norm": "ffn_norm",
    "attn.q_norm": "self_attn.q_layernorm",
    "attn.k_norm": "self_attn.k_layernorm",
    "attn.o": "self_attn.out_proj",
    "conv.in": "conv.in_proj",
    "conv.taps": "conv.conv",
    "conv.out": "conv.out_proj",
    "router": "feed_forward.gate",
    "router.correction": "feed_forward.expert_bias",
    "experts": "feed_forward.experts",
}


def _config(config: ConfigReader) -> ModelConfig:
    norm = read_norm(config, "norm_eps")
    router = read_router(
        config,
        score="sigmoid",
        correction=config.flag("use_expert_bias"),
        weights="score",
        renormalise=read_renormalise(config, Renormalise(eps=f32(1e-6))),
        scale=read_scale(config),
    )
    n_dense = first_dense(config, "num_dense_layers")
    dense, sparse = Ffn(read_width(config)), Ffn(read_width(config, "moe_intermediate_size"), router=router)
    conv = Convolution(config.integer("conv_L_cache", 1, MAX_TAPS), config.flag("conv_bias"))
    rope = read_rope(config, read_head_dim(config)).rope
    attention = read_attention(config, rope, qk_norm=QkNorm("head", norm))
    kinds: dict[str, Mixer] = {"conv": conv, "full_attention": attention}
    if config.get("layer_types") is None:
        raise config.error("layer_types", f"{read_n_layers(config)} names of kinds of layers, one a layer")
    layers = (
        Layer(kinds[kind], dense if n < n_dense else sparse, attn_norm=norm, ffn_norm=norm)
        for n, kind in enumerate(read_kinds(config, kinds, lambda _: "conv"))
    )
    return read_model(config, "lfm2_moe", layers, norm)


def _tied(config: ConfigReader) -> ModelConfig:
    # Older files call it tie_embedding.
    if config.has("tie_embedding"):
        return _config(config.with_value("tie_word_embeddings", config.get("tie_embedding")))
    return _config(config)


def _taps(config: ModelConfig, n: int, prefix: str, _sources: Sources) -> Iterator[Part]:
    """A depthwise convolution's weights have an axis of one input channel: ``[H, 1, taps]``."""
    mixer, h = config.layers[n].mixer, config.hidden_size
    if isinstance(mixer, Convolution):
        source = f"{prefix}conv.conv.weight"
        yield Part(f"layers.{n}.conv.taps.weight", source, (h, 1, mixer.taps), (slice(None), 0))


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE, _taps)


FAMILY = Family(
    name="lfm2_moe",
    title="LFM2-MoE",
    architectures=("Lfm2MoeForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "vocab_size": 65536,
        "hidden_size": 2048,
        "intermediate_size": 7168,
        "moe_intermediate_size": 1792,
        "num_key_value_heads": 8,
        "max_position_embeddings": 128000,
        "norm_eps": 1e-5,
        "rope_theta": 1000000.0,
        "conv_L_cache": 3,
        "conv_bias": False,
        "num_dense_layers": 2,
        "num_experts": 32,
        "num_experts_per_tok": 4,
        "use_expert_bias": True,
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.0,
        "tie_word_embeddings": True,
    },
    config=_tied,
    bindings=_bindings,
)
