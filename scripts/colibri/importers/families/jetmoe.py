# SPDX-License-Identifier: Apache-2.0
"""JetMoE: the attention's query and output projections are experts too."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Attention, Ffn, Layer
from colibri.importers.bind import Binding, Part, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.blocks import bind_stacked
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    f32,
    read_activation,
    read_model,
    read_n_layers,
    read_norm,
    read_width,
)
from colibri.importers.families.family import Family
from colibri.importers.families.names import LLAMA, Table, bind_decoder
from colibri.importers.families.routing import read_router
from colibri.importers.limits import MAX_ROW_ELEMS
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

_TABLE: Table = {
    **LLAMA,
    "attn.router": "self_attention.experts.router.layer",
    "attn.o": "self_attention.experts",
    "router": "mlp.router.layer",
    "ffn": "mlp",
}


def _config(config: ConfigReader) -> ModelConfig:
    head_dim = config.integer("kv_channels", 2, MAX_ROW_ELEMS)
    if head_dim % 2:
        raise config.error("kv_channels", "an even number, for RoPE rotates pairs")
    router, norm = read_router(config), read_norm(config)
    n_kv_heads = config.integer("num_key_value_heads", 1, MAX_ROW_ELEMS)
    if router.top_k * n_kv_heads * head_dim > MAX_ROW_ELEMS:
        raise config.error("num_key_value_heads", f"at most {MAX_ROW_ELEMS} elements in all heads")
    attention = Attention(
        n_heads=router.top_k * n_kv_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        scale=f32(head_dim**-0.5),
        rope=read_rope(config, head_dim).rope,
        o_bias=True,
        kv_map="tile",
        router=router,
    )
    activation = read_activation(config, "activation_function")
    ffn = Ffn(read_width(config), activation, router=router, output_bias=True)
    layer = Layer(attention, ffn, attn_norm=norm, ffn_norm=norm)
    return read_model(config, "jetmoe", (layer,) * read_n_layers(config), norm)


def _parts(config: ModelConfig, n: int, prefix: str, _sources: Sources) -> Iterator[Part]:
    """``kv_proj [k and v rows, H]``, ``experts.input_linear [E, q rows, H]``, ``experts.output_linear [E, H, q rows]``."""
    a, h = config.layers[n].mixer, config.hidden_size
    assert isinstance(a, Attention)
    assert a.router is not None
    n_kv, n_experts = a.n_kv_heads * a.head_dim, a.router.n_experts
    target, source = f"layers.{n}.attn.", f"{prefix}self_attention."
    yield Part(f"{target}k.weight", f"{source}kv_proj.weight", (2 * n_kv, h), (slice(0, n_kv),))
    yield Part(f"{target}v.weight", f"{source}kv_proj.weight", (2 * n_kv, h), (slice(n_kv, 2 * n_kv),))
    for j in range(n_experts):
        experts = f"{source}experts."
        yield Part(f"{target}experts.{j}.q.weight", f"{experts}input_linear.weight", (n_experts, n_kv, h), (j,))
        yield Part(f"{target}experts.{j}.o.weight", f"{experts}output_linear.weight", (n_experts, h, n_kv), (j,))
    yield from bind_stacked(config, n, f"{prefix}mlp.input_linear.weight", f"{prefix}mlp.output_linear.weight")


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE, _parts)


FAMILY = Family(
    name="jetmoe",
    title="JetMoE",
    architectures=("JetMoeForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "hidden_size": 2048,
        "num_hidden_layers": 12,
        "num_key_value_heads": 16,
        "kv_channels": 128,
        "intermediate_size": 5632,
        "max_position_embeddings": 4096,
        "activation_function": "silu",
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "tie_word_embeddings": True,
    },
    config=_config,
    bindings=_bindings,
)
