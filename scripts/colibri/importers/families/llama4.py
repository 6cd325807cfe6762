# SPDX-License-Identifier: Apache-2.0
"""Llama 4, its language model: chunked layers with RoPE, full ones without; the router's weight acts on the expert's input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colibri.axes import Attention, Ffn, Layer, QkNorm, Shared, Temperature
from colibri.importers.bind import Binding, Part, Skip, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.blocks import bind_stacked
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    f32,
    read_activation,
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
from colibri.importers.families.routing import read_router
from colibri.importers.limits import MAX_LAYERS, MAX_POSITIONS, MAX_SCALE
from colibri.importers.rope_config import read_rope
from colibri.importers.text import described
from colibri.model import ModelConfig

_WRAPPER = "language_model."
_OTHER_PARTS = ("vision_model.", "multi_modal_projector.")
_TABLE: Table = {
    **LLAMA,
    **block("ffn", "feed_forward"),
    **block("shared", "feed_forward.shared_expert"),
    "router": "feed_forward.router",
    "experts": "feed_forward.experts",
}
_WRAPPED: Table = {
    **_TABLE,
    **{key: f"{_WRAPPER}{_TABLE[key]}" for key in ("embed", "layers", "final_norm", "head")},
}


def _config(config: ConfigReader) -> ModelConfig:
    n_layers, norm, activation = read_n_layers(config), read_norm(config), read_activation(config)
    width = read_width(config)
    router = read_router(config, weights="sigmoid", side="input")
    sparse = Ffn(width, activation, router=router, shared=Shared(width))
    dense = Ffn(read_width(config, "intermediate_size_mlp"), activation)
    has_experts = set(_moe_layers(config, n_layers))
    layers = (
        Layer(mixer, sparse if n in has_experts else dense, attn_norm=norm, ffn_norm=norm)
        for n, mixer in enumerate(_attentions(config, n_layers))
    )
    return read_model(config, "llama4_text", layers, norm)


def _attentions(config: ConfigReader, n_layers: int) -> Iterator[Attention]:
    bias = config.flag("attention_bias")
    with_rope = _rope_layers(config, n_layers)
    chunk = config.optional_integer("attention_chunk_size", 1, MAX_POSITIONS)
    kinds = read_kinds(
        config,
        ("full_attention", "chunked_attention"),
        lambda n: "chunked_attention" if with_rope[n] and chunk is not None else "full_attention",
    )
    if chunk is None and "chunked_attention" in kinds:
        raise config.error("attention_chunk_size", "a number, as layer_types has chunked layers")
    rope = read_rope(config, read_head_dim(config), "adjacent").rope
    qk_norm = None
    if config.flag("use_qk_norm"):
        qk_norm = QkNorm("head_after", replace(read_norm(config), weight=False))
    temperature = None
    if config.get("attn_temperature_tuning"):  # the published file says 4 for true
        interval = config.integer("floor_scale", 1, MAX_POSITIONS)
        temperature = Temperature(interval, f32(config.number("attn_scale", 0.0, MAX_SCALE)))
    plain = read_attention(config, None, qkv_bias=bias, o_bias=bias)
    for kind, rotated in zip(kinds, with_rope, strict=True):
        here = replace(plain, chunk=chunk if kind == "chunked_attention" else None)
        yield replace(here, rope=rope, qk_norm=qk_norm) if rotated else replace(here, temperature=temperature)


def _rope_layers(config: ConfigReader, n_layers: int) -> list[bool]:
    """Which layers have RoPE: no_rope_layers says 1 for those."""
    if not config.get("no_rope_layers"):
        every = config.integer("no_rope_layer_interval", 1, MAX_LAYERS)
        return [(n + 1) % every != 0 for n in range(n_layers)]
    return [bool(flag) for flag in config.list_of("no_rope_layers", int, n_layers, "times 0 or 1") or []]


def _moe_layers(config: ConfigReader, n_layers: int) -> list[int]:
    listed = config.get("moe_layers")
    if listed is None:
        step = config.integer("interleave_moe_layer_step", 1, MAX_LAYERS)
        return list(range(step - 1, n_layers, step))
    if not isinstance(listed, list) or not all(isinstance(n, int) and 0 <= n < n_layers for n in listed):
        raise config.error("moe_layers", f"a list of layers below {n_layers}", described(listed))
    return [int(str(n)) for n in listed]


def _experts(config: ModelConfig, n: int, prefix: str, _sources: Sources) -> Iterator[Part]:
    if config.layers[n].ffn.router is not None:
        module = f"{prefix}feed_forward.experts."
        yield from bind_stacked(config, n, module + "gate_up_proj", module + "down_proj", transposed=True)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    is_wrapped = f"{_WRAPPED['embed']}.weight" in sources
    yield from bind_decoder(config, sources, _WRAPPED if is_wrapped else _TABLE, _experts)
    if is_wrapped:
        yield from (Skip(prefix, "no part of the language model") for prefix in _OTHER_PARTS)


FAMILY = Family(
    name="llama4_text",
    title="Llama 4 (text)",
    architectures=("Llama4ForCausalLM", "Llama4ForConditionalGeneration"),
    defaults={
        **COMMON_DEFAULTS,
        "vocab_size": 202048,
        "hidden_size": 5120,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 4096 * 32,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "num_experts_per_tok": 1,
        "num_local_experts": 16,
        "moe_layers": None,
        "interleave_moe_layer_step": 1,
        "use_qk_norm": True,
        "no_rope_layers": None,
        "no_rope_layer_interval": 4,
        "attention_chunk_size": 8192,
        "attn_temperature_tuning": True,
        "floor_scale": 8192,
        "attn_scale": 0.1,
    },
    config=_config,
    bindings=_bindings,
    nested=("llama4", "text_config"),
)
