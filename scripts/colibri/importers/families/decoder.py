# SPDX-License-Identifier: Apache-2.0
"""What decoder configs have in common: sizes, norms, heads, the kinds of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from colibri.axes import Activation, Attention, Layer, Norm, Rope
from colibri.importers.config import ConfigReader
from colibri.importers.limits import MAX_LAYERS, MAX_POSITIONS, MAX_ROW_ELEMS, MAX_VOCAB, MIN_NORM_EPS
from colibri.importers.strict_json import Json
from colibri.model import ModelConfig

# Of every configuration class below, and of the base class they share.
COMMON_DEFAULTS: dict[str, Json] = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "head_dim": None,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
    "attention_bias": False,
}
_ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
}


def f32(value: float) -> float:
    """Round to float32, as the axes hold it."""
    return float(np.float32(value))


def read_hidden(config: ConfigReader) -> int:
    """Return the width of the residual stream."""
    return config.integer("hidden_size", 1, MAX_ROW_ELEMS)


def read_width(config: ConfigReader, key: str = "intermediate_size") -> int:
    """Return the width of a feed-forward block."""
    return config.integer(key, 1, MAX_ROW_ELEMS)


def read_activation(config: ConfigReader, key: str = "hidden_act") -> Activation:
    """Return the feed-forward's activation."""
    name = config.text(key)
    if name not in _ACTIVATIONS:
        raise config.error(key, f"one of {', '.join(_ACTIVATIONS)}", hint="this activation is not supported")
    return _ACTIVATIONS[name]


def read_norm(config: ConfigReader, key: str = "rms_norm_eps") -> Norm:
    """Return the RMS norm all layers share."""
    return Norm(f32(config.number(key, MIN_NORM_EPS, 1.0)))


def read_head_dim(config: ConfigReader) -> int:
    """Return a head's dimensions: head_dim, or the hidden size over the heads."""
    hidden, head_dim = read_hidden(config), config.optional_integer("head_dim", 1, MAX_ROW_ELEMS)
    if head_dim is None:
        n_heads = config.integer("num_attention_heads", 1, MAX_ROW_ELEMS)
        if hidden % n_heads:
            raise config.error("num_attention_heads", f"a divisor of hidden_size, {hidden}, as there is no head_dim")
        head_dim = hidden // n_heads
    if head_dim % 2:
        raise config.error("head_dim", "an even number, for RoPE rotates pairs", str(head_dim))
    return head_dim


def read_attention(config: ConfigReader, rope: Rope | None, *, scale: float | None = None, **axes: Any) -> Attention:
    """Return grouped-query attention; `axes` are Attention's own. The scale is head_dim ** -0.5 unless given."""
    head_dim = read_head_dim(config)
    n_heads = config.integer("num_attention_heads", 1, MAX_ROW_ELEMS)
    if n_heads * head_dim > MAX_ROW_ELEMS:
        raise config.error("num_attention_heads", f"at most {MAX_ROW_ELEMS} elements in all heads")
    return Attention(
        n_heads=n_heads,
        n_kv_heads=_kv_heads(config, n_heads),
        head_dim=head_dim,
        scale=f32(head_dim**-0.5 if scale is None else scale),
        rope=rope,
        **axes,
    )


def _kv_heads(config: ConfigReader, n_heads: int) -> int:
    n_kv_heads = config.optional_integer("num_key_value_heads", 1, n_heads)
    if n_kv_heads is None:
        return n_heads
    if n_heads % n_kv_heads:
        raise config.error("num_key_value_heads", f"a divisor of num_attention_heads, {n_heads}")
    return n_kv_heads


def read_window(config: ConfigReader, key: str = "sliding_window") -> int | None:
    """Return a sliding window, None for none."""
    return config.optional_integer(key, 1, MAX_VOCAB)


def read_n_layers(config: ConfigReader) -> int:
    """Return the number of layers."""
    return config.integer("num_hidden_layers", 1, MAX_LAYERS)


def read_kinds(config: ConfigReader, allowed: Iterable[str], default: Callable[[int], str]) -> list[str]:
    """Return each layer's kind: the list layer_types, or the family's rule where there is none."""
    n_layers, known = read_n_layers(config), tuple(allowed)
    listed = config.list_of("layer_types", str, n_layers, "names of kinds of layers")
    kinds = [default(n) for n in range(n_layers)] if listed is None else [str(kind) for kind in listed]
    for kind in kinds:
        if kind not in known:
            raise config.error("layer_types", f"names among {', '.join(known)}", repr(kind))
    return kinds


def read_windows(config: ConfigReader, default: Callable[[int, int | None], bool]) -> list[int | None]:
    """Return each layer's window; `default` says of a layer and sliding_window whether it slides without layer_types."""
    window = read_window(config)
    kinds = read_kinds(
        config,
        ("full_attention", "sliding_attention"),
        lambda n: "sliding_attention" if default(n, window) else "full_attention",
    )
    if window is None and "sliding_attention" in kinds:
        raise config.error("sliding_window", "a number, as layer_types has sliding layers")
    return [window if kind == "sliding_attention" else None for kind in kinds]


def read_model(
    config: ConfigReader, family: str, layers: Iterable[Layer], final_norm: Norm, **axes: Any
) -> ModelConfig:
    """Return the whole; `axes` are ModelConfig's own and win over the config's keys."""
    vocab = config.integer("vocab_size", 1, MAX_VOCAB)
    bos = config.ids("bos_token_id", vocab)
    if len(bos) > 1:
        raise config.error("bos_token_id", "one token id")
    read: dict[str, Any] = {
        "max_seq": config.integer("max_position_embeddings", 1, MAX_POSITIONS),
        "tied_head": config.flag("tie_word_embeddings"),
    }
    limit = axes.pop("max_positions", None)
    if limit is not None:
        read["max_seq"] = min(read["max_seq"], limit)
    return ModelConfig(
        family=family,
        vocab_size=vocab,
        hidden_size=read_hidden(config),
        layers=tuple(layers),
        final_norm=final_norm,
        bos_id=bos[0] if bos else None,
        eos_ids=config.ids("eos_token_id", vocab),
        **{**read, **axes},
    )
