# SPDX-License-Identifier: Apache-2.0
"""A model for each architecture that export-gguf writes: the oracles, less what such a file or llama.cpp's reader cannot say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from colibri.axes import Attention, LatentAttention, Layer, Mixer, Rope
from colibri.importers import load
from colibri.importers.rope import inverse_frequencies
from colibri.model import Model, Reading, Tensor

ROOT = Path(__file__).parents[2]
ORACLES = ROOT / "tests" / "oracles" / "data"


def _as_it_is(name: str, *stated: tuple[str, str]) -> Model:
    return load(ORACLES / name, Reading(None, stated))


def _with(model: Model, change: Callable[[Mixer], Mixer], others: Mapping[str, Tensor] | None = None) -> Model:
    """The model with other mixers, and the tensors that it then has."""
    layers = tuple(replace(layer, mixer=change(layer.mixer)) for layer in model.config.layers)
    config = replace(model.config, layers=layers)
    tensors = {**model.tensors, **(others or {})}
    return replace(model, config=config, tensors={name: tensors[name] for name in config.tensor_shapes()})


def _plain_rope(model: Model) -> Model:
    """Positions that are not scaled, nor the attention for them; the latent attention without biases."""

    def change(mixer: Mixer) -> Mixer:
        assert isinstance(mixer, Attention | LatentAttention)
        assert mixer.rope is not None
        rope = _plain(mixer.rope)
        if isinstance(mixer, Attention):
            return replace(mixer, rope=rope)
        scale = float(np.float32((mixer.nope_dim + mixer.rope_dim) ** -0.5))
        return replace(mixer, rope=rope, scale=scale, bias=False)

    return _with(model, change)


def _plain(rope: Rope) -> Rope:
    table = inverse_frequencies(10000.0, rope.rotary_dim)
    return replace(rope, inv_freq=tuple(float(f) for f in table), factor=1.0)


def _without_output_bias(model: Model) -> Model:
    def change(mixer: Mixer) -> Mixer:
        assert isinstance(mixer, Attention)
        return replace(mixer, o_bias=False)

    return _with(model, change)


def _as_many_kv_heads(model: Model) -> Model:
    """Each head of keys and values once for each head of queries that it serves: the same numbers."""
    first = model.config.layers[0].mixer
    assert isinstance(first, Attention)
    times, head_dim = first.n_heads // first.n_kv_heads, first.head_dim

    def repeated(tensor: Tensor) -> Tensor:
        def read() -> np.ndarray:
            heads = tensor.read().reshape(-1, head_dim, *tensor.shape[1:])
            return heads.repeat(times, axis=0).reshape(-1, *tensor.shape[1:])

        return replace(tensor, shape=(times * tensor.shape[0], *tensor.shape[1:]), read=read)

    def change(mixer: Mixer) -> Mixer:
        assert isinstance(mixer, Attention)
        return replace(mixer, n_kv_heads=mixer.n_heads)

    ends = ("attn.k.weight", "attn.v.weight", "attn.k_norm.weight")
    return _with(model, change, {name: repeated(t) for name, t in model.tensors.items() if name.endswith(ends)})


def _without_groups(model: Model) -> Model:
    """Every expert eligible."""

    def change(layer: Layer) -> Layer:
        router = layer.ffn.router
        return layer if router is None else replace(layer, ffn=replace(layer.ffn, router=replace(router, groups=None)))

    return replace(model, config=replace(model.config, layers=tuple(change(layer) for layer in model.config.layers)))


def _only_sparse(model: Model) -> Model:
    """The layers that have experts."""
    return _picked(model, [n for n, layer in enumerate(model.config.layers) if layer.ffn.router is not None])


def _of_layers(n: int, model: Model) -> Model:
    """So many layers, the last ones all the same."""
    last = len(model.config.layers) - 1
    return _picked(model, [min(i, last) for i in range(n)])


def _picked(model: Model, kept: list[int]) -> Model:
    layers: tuple[Layer, ...] = tuple(model.config.layers[n] for n in kept)
    config = replace(model.config, layers=layers)
    tensors = {}
    for name in config.tensor_shapes():
        _, _, rest = name.partition("layers.")
        n, _, leaf = rest.partition(".")
        source = f"layers.{kept[int(n)]}.{leaf}" if rest else name
        tensors[name] = replace(model.tensors[source], name=name)
    return replace(model, config=config, tensors=tensors)


MODELS: dict[str, tuple[str, Callable[[], Model]]] = {
    "llama": ("llama", lambda: _as_it_is("llama")),
    "llama, scaled positions": ("llama", lambda: _as_it_is("llama_tied_rope3")),
    "mixtral": ("llama", lambda: _as_it_is("mixtral")),
    "mixtral, tied head": ("llama", lambda: _as_it_is("mixtral_tied")),
    "qwen2": ("qwen2", lambda: _as_it_is("qwen2", ("attention.sliding_window", "none"))),
    "qwen2_moe": ("qwen2moe", lambda: _only_sparse(_as_it_is("qwen2_moe"))),
    "qwen3": ("qwen3", lambda: _without_output_bias(_as_it_is("qwen3"))),
    "qwen3_moe": ("qwen3moe", lambda: _as_it_is("qwen3_moe")),
    "olmoe": ("olmoe", lambda: _as_many_kv_heads(_as_it_is("olmoe", ("attention.clip", "none")))),
    "deepseek": ("deepseek", lambda: _as_it_is("deepseek")),
    "deepseek_v2": ("deepseek2", lambda: _without_groups(_plain_rope(_as_it_is("deepseek_v2_groups")))),
    "deepseek_v2, layers of V2-Lite": ("deepseek2", lambda: _of_layers(27, _plain_rope(_as_it_is("deepseek_v2")))),
    "deepseek_v3": ("deepseek2", lambda: _plain_rope(_as_it_is("deepseek_v3"))),
    "granitemoe": ("granitemoe", lambda: _as_it_is("granitemoe")),
    "granitemoeshared": ("granitemoe", lambda: _as_it_is("granitemoeshared")),
    "gpt_oss": ("gpt-oss", lambda: _plain_rope(_as_it_is("gpt_oss"))),
    "minimax_m2": ("minimax-m2", lambda: _as_it_is("minimax_m2")),
    "hunyuan_v1_moe": ("hunyuan-moe", lambda: _as_it_is("hunyuan_v1_moe")),
}
