# SPDX-License-Identifier: Apache-2.0
"""Sizes and values of axes that a user states. What a config.json says is checked key by key where it is read.

Which axes go together is `colibri.combinations`, for every model.
"""

from __future__ import annotations

import math

from colibri.axes import Attention, Convolution, Ffn, LatentAttention, Layer, Norm, Rope, Router
from colibri.combinations import contradictions
from colibri.importers.limits import (
    MAX_LAYERS,
    MAX_POSITIONS,
    MAX_ROW_ELEMS,
    MAX_SCALE,
    MAX_TAPS,
    MAX_VOCAB,
    MIN_NORM_EPS,
)
from colibri.model import ModelConfig


class AxesError(ValueError):
    """An axis has a value that no model can have; carries its path, the rule and what was found."""

    def __init__(self, axis: str, expected: str, got: object) -> None:
        super().__init__(axis)
        self.axis = axis
        self.expected = expected
        self.got = str(got)


def check_axes(config: ModelConfig) -> None:
    """Raise AxesError for the first axis that breaks a rule."""
    _integer("vocab_size", config.vocab_size, MAX_VOCAB)
    _integer("hidden_size", config.hidden_size, MAX_ROW_ELEMS)
    _integer("max_seq", config.max_seq, MAX_POSITIONS)
    _integer("n_layers", len(config.layers), MAX_LAYERS)
    _factor("embedding_scale", config.embedding_scale)
    _factor("logits_scale", config.logits_scale)
    _norm("final_norm", config.final_norm)
    for layer in dict.fromkeys(config.layers):
        _layer(layer)
        if layer.ffn.width or config.encoder is None:
            _ffn(layer.ffn)
    if config.encoder is not None:
        _integer("encoder.n_layers", config.encoder.n_layers, MAX_LAYERS)
        _integer("encoder.max_source", config.encoder.max_source, MAX_POSITIONS)
        _norm("encoder_norm", config.encoder.final_norm)
    for problem in contradictions(config):
        raise AxesError("axes", "axes that go together", problem)


def _integer(axis: str, value: int, high: int, low: int = 1) -> None:
    if not low <= value <= high:
        raise AxesError(axis, f"an integer from {low} to {high}", value)


def _range(axis: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise AxesError(axis, f"a number from {low:g} to {high:g}", value)


def _factor(axis: str, value: float, *, positive: bool = False) -> None:
    if not math.isfinite(value) or not 1 / MAX_SCALE <= (value if positive else abs(value)) <= MAX_SCALE:
        kind = "a number" if positive else "a number of magnitude"
        raise AxesError(axis, f"{kind} from {1 / MAX_SCALE:g} to {MAX_SCALE:g}", value)


def _norm(axis: str, norm: Norm | None) -> None:
    if norm is not None:
        _range(f"{axis}.eps", norm.eps, MIN_NORM_EPS, 1)


def _layer(layer: Layer) -> None:
    for name in ("attn_norm", "ffn_norm", "attn_post_norm", "ffn_post_norm"):
        _norm(name, getattr(layer, name))
    _factor("residual", layer.residual)
    match layer.mixer:
        case Attention():
            _attention(layer.mixer)
        case LatentAttention():
            _latent(layer.mixer)
        case Convolution():
            _integer("convolution.taps", layer.mixer.taps, MAX_TAPS)


def _rope(rope: Rope) -> None:
    _integer("rope.rotary_dim", rope.rotary_dim, MAX_ROW_ELEMS, 2)
    for frequency in rope.inv_freq:
        _range("rope.inv_freq", frequency, 0, MAX_SCALE)
    _factor("rope.factor", rope.factor)


def _attention(a: Attention) -> None:
    for axis in ("n_heads", "n_kv_heads", "head_dim"):
        _integer(f"attention.{axis}", getattr(a, axis), MAX_ROW_ELEMS)
    _integer("attention.n_heads x head_dim", a.n_heads * a.head_dim, MAX_ROW_ELEMS)
    _factor("attention.scale", a.scale)
    for axis in ("window", "chunk"):
        if getattr(a, axis) is not None:
            _integer(f"attention.{axis}", getattr(a, axis), MAX_VOCAB)
    if a.clip is not None:
        _factor("attention.clip", a.clip, positive=True)
    if a.rope is not None:
        _rope(a.rope)
    if a.qk_norm is not None:
        _norm("attention.qk_norm", a.qk_norm.norm)
    if a.temperature is not None:
        _integer("attention.temperature.interval", a.temperature.interval, MAX_POSITIONS)
        _range("attention.temperature.scale", a.temperature.scale, 0, MAX_SCALE)
    if a.router is not None:
        _router(a.router)


def _latent(a: LatentAttention) -> None:
    for axis in ("n_heads", "kv_rank", "nope_dim", "rope_dim", "value_dim"):
        _integer(f"latent.{axis}", getattr(a, axis), MAX_ROW_ELEMS)
    if a.q_rank is not None:
        _integer("latent.q_rank", a.q_rank, MAX_ROW_ELEMS)
    _integer("latent.n_heads x value_dim", a.n_heads * a.value_dim, MAX_ROW_ELEMS)
    _rope(a.rope)
    _norm("latent.norm", a.norm)
    _factor("latent.scale", a.scale)
    if a.window is not None:
        _integer("latent.window", a.window, MAX_VOCAB)


def _router(r: Router) -> None:
    _integer("router.n_experts", r.n_experts, MAX_ROW_ELEMS)
    _integer("router.top_k", r.top_k, r.n_experts)
    _factor("router.scale", r.scale)
    _range("router.jitter", r.jitter, 0, 1)
    if r.capacity is not None:
        _integer("router.capacity", r.capacity, MAX_POSITIONS)
    if r.top_p is not None:
        _range("router.top_p", r.top_p, 1 / MAX_SCALE, 1)
    if r.groups is not None:
        _integer("router.groups.n_groups", r.groups.n_groups, r.n_experts)
    if r.hierarchy is not None:
        _integer("router.hierarchy.n_groups", r.hierarchy.n_groups, r.n_experts)
    if r.renormalise is not None:
        _range("router.renormalise.eps", r.renormalise.eps, 0, 1)
        _range("router.renormalise.floor", r.renormalise.floor, MIN_NORM_EPS, 1)


def _ffn(f: Ffn) -> None:
    _integer("ffn.width", f.width, MAX_ROW_ELEMS)
    if f.clamp is not None:
        _factor("ffn.clamp.limit", f.clamp.limit, positive=True)
        _range("ffn.clamp.alpha", f.clamp.alpha, 0, MAX_SCALE)
    for width in f.widths or ():
        _integer("ffn.widths", width, f.width)
    if f.router is not None:
        _router(f.router)
    if f.shared is not None:
        _integer("shared.width", f.shared.width, MAX_ROW_ELEMS)
