# SPDX-License-Identifier: Apache-2.0
"""DBRX: q, k and v in one matrix, clipped; LayerNorm without bias; experts stacked by rows."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Attention, Ffn, Layer, Norm, Renormalise, Router
from colibri.importers.bind import Binding, Part, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    f32,
    read_activation,
    read_attention,
    read_head_dim,
    read_model,
    read_n_layers,
    read_width,
)
from colibri.importers.families.family import Family
from colibri.importers.families.names import LLAMA, Table, bind_decoder
from colibri.importers.families.routing import SUM
from colibri.importers.limits import MAX_ROW_ELEMS, MAX_SCALE
from colibri.importers.rope_config import read_rope
from colibri.importers.strict_json import Json
from colibri.model import ModelConfig

_SPELLING = {
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "max_position_embeddings": "max_seq_len",
}
_ATTENTION: dict[str, Json] = {"kv_n_heads": 1, "clip_qkv": None}
_FFN: dict[str, Json] = {
    "ffn_act_fn": None,
    "ffn_hidden_size": 3584,
    "moe_num_experts": 4,
    "moe_top_k": 1,
    "moe_normalize_expert_weights": 1.0,
}
_TABLE: Table = {
    **LLAMA,
    "embed": "transformer.wte",
    "layers": "transformer.blocks",
    "final_norm": "transformer.norm_f",
    "attn_norm": "norm_attn_norm.norm_1",
    "ffn_norm": "norm_attn_norm.norm_2",
    "attn.o": "norm_attn_norm.attn.out_proj",
    "router": "ffn.router.layer",
}


def _config(config: ConfigReader) -> ModelConfig:
    config = config.spelt(_SPELLING)
    if config.flag("tie_word_embeddings"):
        raise config.error("tie_word_embeddings", "false, as in every model of this family")
    attn = config.within("attn_config", _ATTENTION) or ConfigReader(config.where, {}, _ATTENTION, "attn_config.")
    ffn = config.within("ffn_config", _FFN) or ConfigReader(config.where, {}, _FFN, "ffn_config.")
    if attn.has("rope_theta") and not config.has("rope_parameters"):  # where the older files have it
        config = config.with_value("rope_theta", attn.get("rope_theta"))
    norm = Norm(f32(1e-5), kind="layer")
    activation_of = ffn.within("ffn_act_fn", {"name": "silu"})
    activation = "silu" if activation_of is None else read_activation(activation_of, "name")
    block = Ffn(read_width(ffn, "ffn_hidden_size"), activation, router=_router(ffn))
    layer = Layer(_attention(config, attn), block, attn_norm=norm, ffn_norm=norm)
    return read_model(config, "dbrx", (layer,) * read_n_layers(config), norm)


def _attention(config: ConfigReader, attn: ConfigReader) -> Attention:
    clip = None if attn.get("clip_qkv") is None else f32(attn.number("clip_qkv", 2.0**-40, MAX_SCALE))
    rope = read_rope(config, read_head_dim(config)).rope
    n_heads = config.integer("num_attention_heads", 1, MAX_ROW_ELEMS)
    n_kv_heads = attn.integer("kv_n_heads", 1, n_heads)
    if n_heads % n_kv_heads:
        raise attn.error("kv_n_heads", f"a divisor of n_heads, {n_heads}")
    return read_attention(config.with_value("num_key_value_heads", n_kv_heads), rope, clip=clip)


def _router(ffn: ConfigReader) -> Router:
    key, renormalise = "moe_normalize_expert_weights", None
    if ffn.get(key) is not None:
        order = ffn.number(key, 1.0, 2.0)
        if order not in (1.0, 2.0):
            raise ffn.error(key, "the order of a norm: 1, 2 or null")
        renormalise = SUM if order == 1.0 else Renormalise("l2")
    n_experts = ffn.integer("moe_num_experts", 1, MAX_ROW_ELEMS)
    top_k = ffn.integer("moe_top_k", 1, n_experts)
    return Router(n_experts, top_k, score="softmax", weights="score", renormalise=renormalise)


def _parts(config: ModelConfig, n: int, prefix: str, _sources: Sources) -> Iterator[Part]:
    """``Wqkv [q, k and v rows, H]``; ``w1`` gate, ``v1`` up and ``w2`` the transposed down, each ``[E * width, H]``."""
    a, ffn, h = config.layers[n].mixer, config.layers[n].ffn, config.hidden_size
    assert isinstance(a, Attention)
    assert ffn.router is not None
    n_q, n_kv = a.n_heads * a.head_dim, a.n_kv_heads * a.head_dim
    fused = (f"{prefix}norm_attn_norm.attn.Wqkv.weight", (n_q + 2 * n_kv, h))
    for name, rows in (("q", (0, n_q)), ("k", (n_q, n_q + n_kv)), ("v", (n_q + n_kv, n_q + 2 * n_kv))):
        yield Part(f"layers.{n}.attn.{name}.weight", *fused, (slice(*rows),))
    n_experts, width = ffn.router.n_experts, ffn.width
    for j in range(n_experts):
        for name, source in (("gate", "w1"), ("up", "v1"), ("down", "w2")):
            yield Part(
                f"layers.{n}.experts.{j}.{name}.weight",
                f"{prefix}ffn.experts.mlp.{source}",
                (n_experts * width, h),
                (j,),
                transposed=name == "down",
                view=(n_experts, width, h),
            )


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE, _parts)


FAMILY = Family(
    name="dbrx",
    title="DBRX",
    architectures=("DbrxForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "d_model": 2048,
        "n_heads": 16,
        "n_layers": 24,
        "max_seq_len": 2048,
        "bos_token_id": None,
        "eos_token_id": None,
    },
    config=_config,
    bindings=_bindings,
)
