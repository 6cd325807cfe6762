# SPDX-License-Identifier: Apache-2.0
"""ERNIE 4.5 MoE: adjacent RoPE, a correction of softmax scores for the choice."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Ffn, Layer, Renormalise
from colibri.importers.bind import Binding, Part, Skip, Sources
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
from colibri.importers.families.names import bind_decoder
from colibri.importers.families.routing import read_router, read_shared
from colibri.importers.limits import MAX_LAYERS
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig


def _config(config: ConfigReader) -> ModelConfig:
    if config.flag("use_bias"):
        raise config.error("use_bias", "false: no published model of this family has biases")
    attention = read_attention(config, read_rope(config, read_head_dim(config), "adjacent").rope)
    norm, activation = read_norm(config), read_activation(config)
    floor = f32(config.number("moe_norm_min", 2.0**-40, 1.0))
    router = read_router(
        config, score="softmax", correction=True, weights="score", renormalise=Renormalise(floor=floor)
    )
    width = read_width(config, "moe_intermediate_size")
    sparse = Ffn(width, activation, router=router, shared=read_shared(config, width, "moe_num_shared_experts"))
    dense = Ffn(read_width(config), activation)
    is_sparse = _sparse_layers(config)
    layers = (Layer(attention, sparse if here else dense, attn_norm=norm, ffn_norm=norm) for here in is_sparse)
    return read_model(config, "ernie4_5_moe", layers, norm)


def _sparse_layers(config: ConfigReader) -> list[bool]:
    n_layers = read_n_layers(config)
    first, last = (config.integer(f"moe_layer_{end}_index", -1, MAX_LAYERS) for end in ("start", "end"))
    last = n_layers - 1 if last == -1 else last
    step = config.integer("moe_layer_interval", 1, MAX_LAYERS)
    return [(n + 1) % step == 0 and first <= n <= last for n in range(n_layers)]


def _correction(config: ModelConfig, n: int, prefix: str, _sources: Sources) -> Iterator[Part]:
    """Stored with an axis more, ``[1, E]``."""
    router = config.layers[n].ffn.router
    if router is not None:
        source = f"{prefix}mlp.moe_statics.e_score_correction_bias"
        yield Part(f"layers.{n}.router.correction", source, (1, router.n_experts), (0,))


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    yield from bind_decoder(config, sources, special=_correction)
    yield Skip("model.mtp_", "multi-token prediction, not used when the model runs")


FAMILY = Family(
    name="ernie4_5_moe",
    title="ERNIE-4.5-MoE",
    architectures=("Ernie4_5_MoeForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "vocab_size": 103424,
        "hidden_size": 2560,
        "intermediate_size": 12288,
        "num_hidden_layers": 28,
        "num_attention_heads": 20,
        "num_key_value_heads": 4,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "use_bias": False,
        "moe_intermediate_size": 1536,
        "moe_k": 6,
        "moe_num_experts": 64,
        "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1,
        "moe_layer_end_index": -1,
        "moe_layer_interval": 1,
        "moe_norm_min": 1e-12,
        "tie_word_embeddings": True,
    },
    config=_config,
    bindings=_bindings,
)
