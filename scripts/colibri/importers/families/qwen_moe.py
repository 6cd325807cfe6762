# SPDX-License-Identifier: Apache-2.0
"""Qwen2-MoE and Qwen3-MoE: dense layers among those with experts; Qwen2's shared expert has a gate of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from colibri.axes import Attention, Ffn, Layer, QkNorm, Router, Shared
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
    read_windows,
)
from colibri.importers.families.family import Family
from colibri.importers.families.names import LLAMA, Table, bind_decoder, block
from colibri.importers.families.routing import read_renormalise, read_router
from colibri.importers.limits import MAX_LAYERS
from colibri.importers.rope_config import read_rope
from colibri.importers.strict_json import Json
from colibri.importers.text import described
from colibri.model import ModelConfig

_TABLE: Table = {**LLAMA, **block("shared", "mlp.shared_expert"), "shared_gate": "mlp.shared_expert_gate"}


def _router(config: ConfigReader) -> Router:
    return read_router(config, score="softmax", weights="score", renormalise=read_renormalise(config))


def _ffns(config: ConfigReader, shared: Shared | None) -> list[Ffn]:
    """The feed-forward of each layer: every decoder_sparse_step-th has experts, but for mlp_only_layers."""
    activation = read_activation(config)
    listed = config.get("mlp_only_layers") or []
    if not isinstance(listed, list) or not all(isinstance(n, int) for n in listed):
        raise config.error("mlp_only_layers", "a list of layers", described(listed))
    step = config.integer("decoder_sparse_step", 1, MAX_LAYERS)
    dense_only = {int(str(n)) for n in listed}
    is_sparse = [n not in dense_only and (n + 1) % step == 0 for n in range(read_n_layers(config))]
    dense = None if all(is_sparse) else Ffn(read_width(config), activation)
    width = read_width(config, "moe_intermediate_size")
    sparse = Ffn(width, activation, router=_router(config), shared=shared)
    return [sparse if here or dense is None else dense for here in is_sparse]


def _model(config: ConfigReader, family: str, attention: list[Attention], ffns: list[Ffn]) -> ModelConfig:
    norm = read_norm(config)
    layers = (Layer(a, f, attn_norm=norm, ffn_norm=norm) for a, f in zip(attention, ffns, strict=True))
    return read_model(config, family, layers, norm)


def _qwen2(config: ConfigReader) -> ModelConfig:
    rope = read_rope(config, read_head_dim(config)).rope
    slides: Callable[[int, int | None], bool] = lambda n, _: (  # noqa: E731  # one use, and a name for it
        config.flag("use_sliding_window") and n % 2 == 0 and n < config.integer("max_window_layers", 0, MAX_LAYERS)
    )
    attention = [
        read_attention(config, rope, window=w, qkv_bias=config.flag("qkv_bias")) for w in _windows(config, slides)
    ]
    shared = Shared(read_width(config, "shared_expert_intermediate_size"), gated=True)
    return _model(config, "qwen2_moe", attention, _ffns(config, shared))


def _windows(config: ConfigReader, slides: Callable[[int, int | None], bool]) -> list[int | None]:
    if not config.flag("use_sliding_window") and config.get("layer_types") is None:
        return [None] * read_n_layers(config)
    if config.get("sliding_window") == 0:  # the framework's word for none
        return read_windows(config.with_value("sliding_window", None), slides)
    return read_windows(config, slides)


def _qwen3(config: ConfigReader) -> ModelConfig:
    rope = read_rope(config, read_head_dim(config)).rope
    bias = config.flag("attention_bias")
    attention = [
        read_attention(config, rope, window=w, qkv_bias=bias, o_bias=bias, qk_norm=QkNorm("head", read_norm(config)))
        for w in _windows(config, lambda _, window: window is not None)
    ]
    return _model(config, "qwen3_moe", attention, _ffns(config, None))


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE)


_DEFAULTS: dict[str, Json] = {
    **COMMON_DEFAULTS,
    "vocab_size": 151936,
    "hidden_size": 2048,
    "num_hidden_layers": 24,
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "decoder_sparse_step": 1,
    "mlp_only_layers": None,
    "norm_topk_prob": False,
    "bos_token_id": None,
    "eos_token_id": None,
}

QWEN2_MOE = Family(
    name="qwen2_moe",
    title="Qwen2-MoE",
    architectures=("Qwen2MoeForCausalLM",),
    defaults={
        **_DEFAULTS,
        "intermediate_size": 5632,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "max_window_layers": 28,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
        "num_experts_per_tok": 4,
        "num_experts": 60,
        "qkv_bias": True,
    },
    config=_qwen2,
    bindings=_bindings,
)
QWEN3_MOE = Family(
    name="qwen3_moe",
    title="Qwen3-MoE",
    architectures=("Qwen3MoeForCausalLM",),
    defaults={
        **_DEFAULTS,
        "intermediate_size": 6144,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "moe_intermediate_size": 768,
        "num_experts_per_tok": 8,
        "num_local_experts": 128,
    },
    config=_qwen3,
    bindings=_bindings,
)
