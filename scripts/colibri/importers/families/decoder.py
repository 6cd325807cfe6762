# SPDX-License-Identifier: Apache-2.0
"""What the decoders of the Llama line have in common: config keys, and the names around the feed-forward."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np

from colibri.axes import Attention, Ffn, Layer, Norm, Rope
from colibri.importers.bind import Copy, Part
from colibri.importers.config import ConfigReader
from colibri.importers.rope_config import inverse_frequencies
from colibri.importers.strict_json import Json
from colibri.model import ModelConfig

MAX_ROW_ELEMS = 65536  # docs/NUMERICS: int32 accumulators hold the sum of a row of int8 products
MAX_POSITIONS = 2**24  # up to there float32 holds every position exactly
MIN_NORM_EPS = 2.0**-40  # smaller values are zero in the engine's arithmetic
MAX_LAYERS = 65536
MAX_VOCAB = 2**31 - 1

# Of every configuration class below, and of the base class they share.
COMMON_DEFAULTS: dict[str, Json] = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "head_dim": None,
    "hidden_act": "silu",
    "rope_theta": 10000.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
}


def read_decoder(config: ConfigReader, family: str, ffn: Ffn, window: int | None = None) -> ModelConfig:
    """Axes of a decoder with grouped-query attention whose layers are all alike; raises CheckpointError."""
    hidden = config.integer("hidden_size", 1, MAX_ROW_ELEMS)
    vocab = config.integer("vocab_size", 1, MAX_VOCAB)
    for key in ("attention_bias", "mlp_bias"):
        if config.flag(key):
            raise config.error(key, "false: biases are not supported yet", hint="use a checkpoint without biases")
    head_dim = _head_dim(config, hidden)
    bos = config.ids("bos_token_id", vocab)
    if len(bos) > 1:
        raise config.error("bos_token_id", "one token id")
    inv_freq = inverse_frequencies(config, head_dim)
    attention = Attention(
        n_heads=config.integer("num_attention_heads", 1, MAX_ROW_ELEMS),
        n_kv_heads=_kv_heads(config),
        head_dim=head_dim,
        scale=float(np.float32(head_dim**-0.5)),
        rope=Rope("half", tuple(float(f) for f in inv_freq)),
        window=window,
    )
    if attention.n_heads * head_dim > MAX_ROW_ELEMS:
        raise config.error("num_attention_heads", f"at most {MAX_ROW_ELEMS} elements in all heads")
    norm = Norm(float(np.float32(config.number("rms_norm_eps", MIN_NORM_EPS, 1.0))))
    return ModelConfig(
        family=family,
        vocab_size=vocab,
        hidden_size=hidden,
        max_seq=config.integer("max_position_embeddings", 1, MAX_POSITIONS),
        final_norm=norm,
        tied_head=config.flag("tie_word_embeddings"),
        layers=(Layer(attention, ffn, attn_norm=norm, ffn_norm=norm),)
        * config.integer("num_hidden_layers", 1, MAX_LAYERS),
        bos_id=bos[0] if bos else None,
        eos_ids=config.ids("eos_token_id", vocab),
    )


def read_width(config: ConfigReader) -> int:
    """Return the feed-forward's width; refuses an activation other than SiLU."""
    if config.text("hidden_act") not in ("silu", "swish"):
        raise config.error("hidden_act", "'silu'", hint="this activation is not supported yet")
    return config.integer("intermediate_size", 1, MAX_ROW_ELEMS)


def read_window(config: ConfigReader) -> int | None:
    """Return the sliding window all layers share, None for none."""
    window = config.optional_integer("sliding_window", 1, MAX_VOCAB)
    kinds = config.get("layer_types")
    if kinds is not None and (
        not isinstance(kinds, list)
        or any(kind != ("sliding_attention" if window else "full_attention") for kind in kinds)
    ):
        raise config.error("layer_types", "the same attention in all layers, sliding where sliding_window is set")
    return window


def _head_dim(config: ConfigReader, hidden: int) -> int:
    head_dim = config.optional_integer("head_dim", 1, MAX_ROW_ELEMS)
    if head_dim is None:
        n_heads = config.integer("num_attention_heads", 1, MAX_ROW_ELEMS)
        if hidden % n_heads:
            raise config.error("num_attention_heads", f"a divisor of hidden_size, {hidden}, as there is no head_dim")
        head_dim = hidden // n_heads
    if head_dim % 2:
        raise config.error("head_dim", "an even number, for RoPE rotates pairs", str(head_dim))
    return head_dim


def _kv_heads(config: ConfigReader) -> int:
    n_heads = config.integer("num_attention_heads", 1, MAX_ROW_ELEMS)
    n_kv_heads = config.optional_integer("num_key_value_heads", 1, n_heads)
    if n_kv_heads is None:
        return n_heads
    if n_heads % n_kv_heads:
        raise config.error("num_key_value_heads", f"a divisor of num_attention_heads, {n_heads}")
    return n_kv_heads


FfnBindings = Callable[[ModelConfig, int, Collection[str]], Iterator[Part]]


def bind_decoder(config: ModelConfig, names: Collection[str], ffn: FfnBindings) -> Iterator[Part | Copy]:
    """Where the tensors of a Llama-like decoder are; `ffn` says it for the feed-forward of a layer."""
    embedding = (config.vocab_size, config.hidden_size)
    yield Part("embed.weight", "model.embed_tokens.weight", embedding)
    for n in range(len(config.layers)):
        yield from _bind_attention(config, n)
        yield from ffn(config, n, names)
    yield Part("final_norm.weight", "model.norm.weight", (config.hidden_size,))
    if not config.tied_head:
        yield Part("head.weight", "lm_head.weight", embedding)
    elif "lm_head.weight" in names:
        yield Copy("embed.weight", "lm_head.weight", embedding)


def _bind_attention(config: ModelConfig, n: int) -> Iterator[Part]:
    a, h = config.layers[n].mixer, config.hidden_size
    assert isinstance(a, Attention)
    n_q, n_kv = a.n_heads * a.head_dim, a.n_kv_heads * a.head_dim
    target, source = f"layers.{n}.", f"model.layers.{n}."
    yield Part(target + "attn_norm.weight", source + "input_layernorm.weight", (h,))
    yield Part(target + "attn.q.weight", source + "self_attn.q_proj.weight", (n_q, h))
    yield Part(target + "attn.k.weight", source + "self_attn.k_proj.weight", (n_kv, h))
    yield Part(target + "attn.v.weight", source + "self_attn.v_proj.weight", (n_kv, h))
    yield Part(target + "attn.o.weight", source + "self_attn.o_proj.weight", (h, n_q))
    yield Part(target + "ffn_norm.weight", source + "post_attention_layernorm.weight", (h,))
