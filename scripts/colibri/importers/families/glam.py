# SPDX-License-Identifier: Apache-2.0
"""GLaM (Du et al. 2021, section 4): experts in every other layer, gated GELU in the layers between.

No framework ships it, so the names are Llama's: ``mlp.gate.weight``, ``mlp.experts.J.up_proj.weight`` and ``down_proj``, with
`gated_experts` also ``gate_proj``. GLaM's relative position bias, one a layer, is no axis: RoPE, or `rope_theta` null for none.
"""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Ffn, Layer
from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.blocks import bind_apart
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
from colibri.importers.families.family import Family
from colibri.importers.families.names import bind_decoder
from colibri.importers.families.routing import read_router
from colibri.importers.limits import MAX_LAYERS
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig


def _config(config: ConfigReader) -> ModelConfig:
    has_rope = config.get("rope_theta") is not None or config.get("rope_parameters") is not None
    attention = read_attention(config, read_rope(config, read_head_dim(config)).rope if has_rope else None)
    norm, width, activation = read_norm(config), read_width(config), read_activation(config)
    dense = Ffn(width, activation)
    # The weighted average of their outputs: the softmax of all, divided by the sum of the chosen, is that of the chosen.
    experts = Ffn(width, activation, gated=config.flag("gated_experts"), router=read_router(config))
    interval = config.integer("moe_layer_interval", 1, MAX_LAYERS)
    layers = (
        Layer(attention, dense if n % interval else experts, attn_norm=norm, ffn_norm=norm)
        for n in range(read_n_layers(config))
    )
    return read_model(config, "glam", layers, norm)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, special=bind_apart)


FAMILY = Family(
    name="glam",
    title="GLaM",
    architectures=("GlamForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "intermediate_size": 16384,
        "max_position_embeddings": 1024,
        "hidden_act": "gelu",
        "num_experts": 64,
        "num_experts_per_tok": 2,
        "moe_layer_interval": 2,
        "gated_experts": False,
    },
    config=_config,
    bindings=_bindings,
)
