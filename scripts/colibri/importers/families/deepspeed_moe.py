# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed-MoE and PR-MoE (Rajbhandari et al. 2022, section 4): Megatron-DeepSpeed's names, with its arguments as config.json.

Residual experts (`mlp_type` residual) are mixed with the fixed MLP by the softmax of ``mlp.coefficient``, as DeepSpeed's layer
does it; a pyramid is a list of `num_experts`. No token is dropped: what an expert's capacity would drop depends on the other
tokens. The checkpoint is a safetensors export: Megatron's own files are pickles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colibri.axes import Attention, Ffn, Layer, Norm, Renormalise, Router, Shared
from colibri.importers.bind import Binding, Part, Sources
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
from colibri.importers.families.deepseek import require
from colibri.importers.families.family import Family
from colibri.importers.families.names import Table, bind_decoder
from colibri.importers.limits import MAX_LAYERS, MAX_ROW_ELEMS
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

_SPELLING = {
    "num_hidden_layers": "num_layers",
    "intermediate_size": "ffn_hidden_size",
    "vocab_size": "padded_vocab_size",
    "hidden_act": "activation",
    "rms_norm_eps": "layernorm_epsilon",
    "num_experts_per_tok": "topk",
}
_TABLE: Table = {
    "embed": "language_model.embedding.word_embeddings",
    "layers": "language_model.encoder.layers",
    "final_norm": "language_model.encoder.final_layernorm",
    "head": "language_model.output_layer",
    "attn_norm": "input_layernorm",
    "attn.o": "self_attention.dense",
    "ffn_norm": "post_attention_layernorm",
    "router": "mlp.deepspeed_moe.gate.wg",
    "shared_mix": "mlp.coefficient",
}
_TOP_2_FLOOR = 2.0**-23
"""The smallest sum that DeepSpeed divides two weights by: float32's epsilon."""


def _config(config: ConfigReader) -> ModelConfig:
    config = config.spelt(_SPELLING)
    if not config.flag("use_rotary_position_embeddings"):
        raise config.error(
            "use_rotary_position_embeddings", "true", hint="learned position embeddings are not supported"
        )
    require(config, "qkv_layout", "contiguous", "per_kv_head")
    bias = config.flag("add_bias_linear")
    attention = read_attention(config, read_rope(config, read_head_dim(config)).rope, qkv_bias=bias, o_bias=bias)
    norm = _norm(config)
    interval, n_layers = config.integer("expert_interval", 1, MAX_LAYERS), read_n_layers(config)
    counts = _expert_counts(config, n_layers // interval)
    dense = Ffn(read_width(config), read_activation(config), gated=config.flag("swiglu"), bias=bias)
    if dense.gated:
        dense = replace(dense, activation="silu")
    ffns = {count: _with_experts(config, dense, count) for count in {*counts}}
    layers = (
        Layer(attention, dense if (n + 1) % interval else ffns[counts[n // interval]], attn_norm=norm, ffn_norm=norm)
        for n in range(n_layers)
    )
    tied = not config.flag("untie_embeddings_and_output_weights")
    return read_model(config, "deepspeed_moe", layers, norm, tied_head=tied)


def _norm(config: ConfigReader) -> Norm:
    if require(config, "normalization", "layernorm", "rmsnorm") == "rmsnorm":
        return read_norm(config)
    return replace(read_norm(config), kind="layer", bias=True)


def _expert_counts(config: ConfigReader, n_moe_layers: int) -> list[int]:
    """Of each layer with experts; one number in the list is that of all. A layer of one expert is dense."""
    listed = config.get("num_experts")
    values = listed if isinstance(listed, list) else [listed]
    if len(values) == 1:
        values = values * n_moe_layers
    counts = [n for n in values if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= MAX_ROW_ELEMS]
    if len(counts) != n_moe_layers or counts != values:
        raise config.error(
            "num_experts", f"one number of experts, or one for each of {n_moe_layers} layers with experts"
        )
    return counts


def _with_experts(config: ConfigReader, dense: Ffn, n_experts: int) -> Ffn:
    if n_experts == 1:
        return dense
    top_k = config.integer("num_experts_per_tok", 1, n_experts)
    renormalise = None if top_k == 1 else Renormalise(floor=_TOP_2_FLOOR)
    router = Router(n_experts, top_k, score="softmax", weights="score", renormalise=renormalise)
    residual = require(config, "mlp_type", "standard", "residual") == "residual"
    return replace(dense, router=router, shared=Shared(dense.width, mix=True) if residual else None)


def _parts(config: ModelConfig, n: int, prefix: str, layout: str) -> Iterator[Part]:
    yield from _attention(config, n, prefix, layout)
    ffn, target = config.layers[n].ffn, f"layers.{n}."
    if ffn.router is None:
        yield from _block(config, ffn, f"{target}ffn", f"{prefix}mlp")
        return
    for j in range(ffn.router.n_experts):
        source = f"{prefix}mlp.deepspeed_moe.experts.deepspeed_experts.{j}"
        yield from _block(config, ffn, f"{target}experts.{j}", source)
    if ffn.shared is not None:
        yield from _block(config, ffn, f"{target}shared", f"{prefix}mlp.mlp")


def _block(config: ModelConfig, ffn: Ffn, to: str, source: str) -> Iterator[Part]:
    """``dense_h_to_4h [width, H]``, gate before up where it is gated, ``dense_4h_to_h [H, width]``; biases."""
    h, names = config.hidden_size, ("gate", "up")[not ffn.gated :]
    for leaf in ("weight", "bias")[: 1 + ffn.bias]:
        tails: tuple[tuple[int, ...], tuple[int, ...]] = ((h,), (ffn.width,)) if leaf == "weight" else ((), ())
        for i, name in enumerate(names):
            rows = slice(i * ffn.width, (i + 1) * ffn.width)
            shape = (len(names) * ffn.width, *tails[0])
            yield Part(f"{to}.{name}.{leaf}", f"{source}.dense_h_to_4h.{leaf}", shape, (rows,))
        yield Part(f"{to}.down.{leaf}", f"{source}.dense_4h_to_h.{leaf}", (h, *tails[1]))


def _attention(config: ModelConfig, n: int, prefix: str, layout: str) -> Iterator[Part]:
    """``query_key_value``: contiguous: rows of q, k and v; per_kv_head: of each KV head its queries, its key, its value."""
    a = config.layers[n].mixer
    assert isinstance(a, Attention)
    g, kv, d = a.n_heads // a.n_kv_heads, a.n_kv_heads, a.head_dim
    n_rows = (g + 2) * kv * d
    by_head = layout == "per_kv_head"
    heads = kv if by_head else 1
    ends = [n * d * (1 if by_head else kv) for n in (g, g + 1, g + 2)]
    for leaf in ("weight", "bias")[: 1 + a.qkv_bias]:
        tail = (config.hidden_size,) if leaf == "weight" else ()
        for name, begin, end in zip("qkv", (0, *ends), ends, strict=False):
            source = f"{prefix}self_attention.query_key_value.{leaf}"
            index, view = (slice(None), slice(begin, end)), (heads, n_rows // heads, *tail)
            yield Part(f"layers.{n}.attn.{name}.{leaf}", source, (n_rows, *tail), index, view=view, merged=True)


def _bindings(config: ModelConfig, sources: Sources, reader: ConfigReader) -> Iterator[Binding]:
    layout = reader.text("qkv_layout")
    return bind_decoder(config, sources, _TABLE, lambda config, n, prefix, _: _parts(config, n, prefix, layout))


FAMILY = Family(
    name="deepspeed_moe",
    title="DeepSpeed-MoE, PR-MoE",
    architectures=("DeepSpeedMoeForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "padded_vocab_size": 51200,
        "num_layers": 24,
        "ffn_hidden_size": 8192,
        "max_position_embeddings": 2048,
        "layernorm_epsilon": 1e-5,
        "normalization": "layernorm",
        "activation": "gelu",
        "swiglu": False,
        "add_bias_linear": True,
        "use_rotary_position_embeddings": False,
        "untie_embeddings_and_output_weights": False,
        "qkv_layout": "contiguous",
        "num_experts": [1],
        "expert_interval": 2,
        "topk": 1,
        "mlp_type": "standard",
    },
    config=_config,
    bindings=_bindings,
)
