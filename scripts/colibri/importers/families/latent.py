# SPDX-License-Identifier: Apache-2.0
"""Multi-head latent attention as DeepSeek-V2 and V3 store it: keys and values unfolded from a latent by one matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colibri.axes import LatentAttention, Norm
from colibri.importers.bind import Part, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import f32
from colibri.importers.families.names import LLAMA, Table
from colibri.importers.limits import MAX_ROW_ELEMS
from colibri.importers.rope_config import Pairing, read_rope
from colibri.model import ModelConfig

_LATENT_EPS = 1e-6  # whatever rms_norm_eps says

LATENT_TABLE: Table = {
    **LLAMA,
    "attn.q": "self_attn.q_b_proj",
    "attn.q_a": "self_attn.q_a_proj",
    "attn.q_a_norm": "self_attn.q_a_layernorm",
    "attn.kv_a": "self_attn.kv_a_proj_with_mqa",
    "attn.kv_a_norm": "self_attn.kv_a_layernorm",
}


def read_latent(config: ConfigReader, pairing: Pairing) -> LatentAttention:
    """Return latent attention; its scale grows with the stretch of positions where mscale_all_dim says so."""
    rope_dim = config.integer("qk_rope_head_dim", 2, MAX_ROW_ELEMS)
    if rope_dim % 2:
        raise config.error("qk_rope_head_dim", "an even number, for RoPE rotates pairs")
    rope = read_rope(config, rope_dim, pairing)
    mixer = LatentAttention(
        n_heads=config.integer("num_attention_heads", 1, MAX_ROW_ELEMS),
        kv_rank=config.integer("kv_lora_rank", 1, MAX_ROW_ELEMS),
        nope_dim=config.integer("qk_nope_head_dim", 1, MAX_ROW_ELEMS),
        rope_dim=rope_dim,
        value_dim=config.integer("v_head_dim", 1, MAX_ROW_ELEMS),
        scale=1.0,
        rope=rope.rope,
        norm=Norm(f32(_LATENT_EPS)),
        q_rank=config.optional_integer("q_lora_rank", 1, MAX_ROW_ELEMS),
        bias=config.flag("attention_bias"),
    )
    if mixer.n_heads * mixer.value_dim > MAX_ROW_ELEMS:
        raise config.error("v_head_dim", f"at most {MAX_ROW_ELEMS} elements in all heads")
    return replace(mixer, scale=f32((mixer.nope_dim + rope_dim) ** -0.5 * rope.qk_factor))


def bind_latent(config: ModelConfig, n: int, prefix: str, _sources: Sources) -> Iterator[Part]:
    """Split ``kv_b_proj [n_heads * (dn + dv), r]``: each head's dn key rows, transposed, and its dv value rows."""
    a = config.layers[n].mixer
    assert isinstance(a, LatentAttention)
    if a.q_rank is None:  # queries straight from the layer's input go by the plain name
        n_q = a.n_heads * (a.nope_dim + a.rope_dim)
        yield Part(f"layers.{n}.attn.q.weight", f"{prefix}self_attn.q_proj.weight", (n_q, config.hidden_size))
    rows = a.nope_dim + a.value_dim
    source, shape = f"{prefix}self_attn.kv_b_proj.weight", (a.n_heads * rows, a.kv_rank)
    heads = (a.n_heads, rows, a.kv_rank)
    keys, values = (slice(None), slice(0, a.nope_dim)), (slice(None), slice(a.nope_dim, rows))
    yield Part(f"layers.{n}.attn.k_up.weight", source, shape, keys, transposed=True, view=heads, merged=True)
    yield Part(f"layers.{n}.attn.v_up.weight", source, shape, values, view=heads, merged=True)
