# SPDX-License-Identifier: Apache-2.0
"""Qwen2 and Qwen3, dense: biases on q, k and v; or a norm of each head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from colibri.axes import Ffn, Layer, QkNorm
from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    read_activation,
    read_attention,
    read_head_dim,
    read_model,
    read_norm,
    read_width,
    read_windows,
)
from colibri.importers.families.family import Family
from colibri.importers.families.names import bind_decoder
from colibri.importers.limits import MAX_LAYERS
from colibri.importers.rope_config import read_rope
from colibri.importers.strict_json import Json
from colibri.model import ModelConfig


def _slides(config: ConfigReader, n: int, window: int | None) -> bool:
    if not config.flag("use_sliding_window"):
        return False
    return window is not None and n >= config.integer("max_window_layers", 0, MAX_LAYERS)


def _dense(config: ConfigReader, family: str, **attention: Any) -> ModelConfig:
    rope = read_rope(config, read_head_dim(config)).rope
    ffn = Ffn(read_width(config), read_activation(config))
    norm = read_norm(config)
    windows = read_windows(config, lambda n, window: _slides(config, n, window))
    layers = (
        Layer(read_attention(config, rope, window=w, **attention), ffn, attn_norm=norm, ffn_norm=norm) for w in windows
    )
    return read_model(config, family, layers, norm)


def _qwen2(config: ConfigReader) -> ModelConfig:
    return _dense(config, "qwen2", qkv_bias=True)


def _qwen3(config: ConfigReader) -> ModelConfig:
    bias = config.flag("attention_bias")
    return _dense(config, "qwen3", qkv_bias=bias, o_bias=bias, qk_norm=QkNorm("head", read_norm(config)))


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources)


_DEFAULTS: dict[str, Json] = {
    **COMMON_DEFAULTS,
    "vocab_size": 151936,
    "intermediate_size": 22016,
    "num_key_value_heads": 32,
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "bos_token_id": None,
    "eos_token_id": None,
}

QWEN2 = Family("qwen2", "Qwen2", ("Qwen2ForCausalLM",), _DEFAULTS, _qwen2, _bindings)
QWEN3 = Family("qwen3", "Qwen3", ("Qwen3ForCausalLM",), {**_DEFAULTS, "head_dim": 128}, _qwen3, _bindings)
