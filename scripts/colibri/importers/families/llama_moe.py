# SPDX-License-Identifier: Apache-2.0
"""LLaMA-MoE: a Llama cut into experts of unequal width, behind a two-layer tanh gate."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Activation, Ffn, Layer, Router
from colibri.importers.bind import Binding, Part, Skip, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    f32,
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
from colibri.importers.families.names import LLAMA, Table, bind_decoder
from colibri.importers.families.routing import read_router
from colibri.importers.limits import MAX_SCALE
from colibri.importers.rope_config import read_rope
from colibri.importers.strict_json import Json
from colibri.importers.text import described
from colibri.model import ModelConfig

_TABLE: Table = {
    **LLAMA,
    "router": ("mlp.gate.gate_network.2", "mlp.gate.gate_network"),
    "router.hidden": "mlp.gate.gate_network.0",
}
_CALCULATOR = "UniversalCalculator"


def _config(config: ConfigReader) -> ModelConfig:
    if config.get("calculator_type") is not None:
        require(config, "calculator_type", _CALCULATOR)
    rope, norm = read_rope(config, read_head_dim(config)).rope, read_norm(config)
    attention = read_attention(config, rope)
    activation = read_activation(config)
    layers = (
        Layer(attention, _ffn(config, n, activation), attn_norm=norm, ffn_norm=norm)
        for n in range(read_n_layers(config))
    )
    return read_model(config, "llama_moe", layers, norm)


def _ffn(config: ConfigReader, n: int, activation: Activation) -> Ffn:
    total, router = read_width(config), _router(config, n)
    widths = _of_layer(config, "size_experts", n)
    if widths is None:
        if total % router.n_experts:
            raise config.error("intermediate_size", f"a multiple of num_experts, {router.n_experts}")
        return Ffn(total // router.n_experts, activation, router=router)
    sizes = (
        [w for w in widths if isinstance(w, int) and not isinstance(w, bool) and w > 0]
        if isinstance(widths, list)
        else []
    )
    if len(sizes) != router.n_experts or sizes != widths or sum(sizes) != total:
        expected = f"{router.n_experts} widths a layer that make {total} together"
        raise config.error("size_experts", expected, f"{described(widths)} for layer {n}")
    return Ffn(max(sizes), activation, router=router, widths=tuple(sizes))


def _router(config: ConfigReader, n: int) -> Router:
    scale = _of_layer(config, "score_scale_factor", n)
    weighted = config.flag("multiply_gate_scores")
    weights = ("softmax" if config.flag("gate_use_softmax") else "score") if weighted else "one"
    return read_router(
        config,
        hidden="tanh" if require(config, "gate_network", "mlp", "linear") == "mlp" else "none",
        weights=weights,
        scale=f32(config.with_value("score_scale_factor", scale).number("score_scale_factor", 2.0**-40, MAX_SCALE))
        if weighted
        else 1.0,
    )


def _of_layer(config: ConfigReader, key: str, n: int) -> Json:
    """The value for layer n of a key that may hold a list of one each."""
    value = config.get(key)
    if not isinstance(value, list):
        return value
    if len(value) != read_n_layers(config):
        raise config.error(key, f"{read_n_layers(config)} values, one a layer", f"{len(value)}")
    return value[n]


def _experts(config: ModelConfig, n: int, prefix: str, _sources: Sources) -> Iterator[Part]:
    """``weight_gate.J [width, H]``, ``weight_up.J`` the same, ``weight_down.J [H, width]``."""
    ffn, h = config.layers[n].ffn, config.hidden_size
    assert ffn.router is not None
    for j in range(ffn.router.n_experts):
        width = ffn.width_of(j)
        for name, shape in (("gate", (width, h)), ("up", (width, h)), ("down", (h, width))):
            source = f"{prefix}mlp.calculator.experts.weight_{name}.{j}"
            yield Part(f"layers.{n}.experts.{j}.{name}.weight", source, shape)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    yield from bind_decoder(config, sources, _TABLE, _experts)
    for n in range(len(config.layers)):
        yield Skip(f"model.layers.{n}.mlp.gate.weight_noise.", "noise of the gate, in training only")


FAMILY = Family(
    name="llama_moe",
    title="LLaMA-MoE",
    architectures=("LlamaMoEForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "intermediate_size": 11008,
        "max_position_embeddings": 2048,
        "num_experts": 16,
        "num_selects": 4,
        "size_experts": None,
        "gate_network": "mlp",
        "gate_use_softmax": True,
        "multiply_gate_scores": True,
        "score_scale_factor": 1.0,
        "calculator_type": _CALCULATOR,
    },
    config=_config,
    bindings=_bindings,
)
