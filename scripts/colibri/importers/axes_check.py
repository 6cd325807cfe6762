# SPDX-License-Identifier: Apache-2.0
"""Which axes go together, for those that a user states. What a config.json says is checked key by key where it is read."""

from __future__ import annotations

import math

from colibri.axes import Attention, Convolution, Ffn, Groups, LatentAttention, Layer, Norm, Rope, Router
from colibri.importers.limits import MAX_LAYERS, MAX_POSITIONS, MAX_ROW_ELEMS, MAX_SCALE, MAX_VOCAB, MIN_NORM_EPS
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


def _require(condition: bool, axis: str, expected: str, got: object) -> None:
    if not condition:
        raise AxesError(axis, expected, got)


def _integer(axis: str, value: int, high: int, low: int = 1) -> None:
    _require(low <= value <= high, axis, f"an integer from {low} to {high}", value)


def _factor(axis: str, value: float) -> None:
    good = math.isfinite(value) and 1 / MAX_SCALE <= abs(value) <= MAX_SCALE
    _require(good, axis, f"a number of magnitude {1 / MAX_SCALE:g} to {MAX_SCALE:g}", value)


def _norm(axis: str, norm: Norm) -> None:
    _require(MIN_NORM_EPS <= norm.eps <= 1, f"{axis}.eps", f"a number from {MIN_NORM_EPS:g} to 1", norm.eps)
    _require(norm.weight or not norm.bias, f"{axis}.bias", "a weight where there is a bias", "a bias alone")


def _layer(layer: Layer) -> None:
    for name in ("attn_norm", "ffn_norm", "attn_post_norm", "ffn_post_norm"):
        norm = getattr(layer, name)
        if norm is not None:
            _norm(name, norm)
    _factor("residual", layer.residual)
    match layer.mixer:
        case Attention():
            _attention(layer.mixer)
        case LatentAttention():
            _latent(layer.mixer)
        case Convolution():
            _integer("convolution.taps", layer.mixer.taps, 64)
    _ffn(layer.ffn)


def _rope(rope: Rope, n_dims: int) -> None:
    _require(2 <= rope.rotary_dim <= n_dims, "rope.rotary_dim", f"an even number up to {n_dims}", rope.rotary_dim)
    good = all(math.isfinite(f) and 0 <= f <= MAX_SCALE for f in rope.inv_freq)
    _require(good, "rope.inv_freq", f"numbers from 0 to {MAX_SCALE:g}", "others")
    _factor("rope.factor", rope.factor)


def _attention(a: Attention) -> None:
    for axis in ("n_heads", "n_kv_heads", "head_dim"):
        _integer(f"attention.{axis}", getattr(a, axis), MAX_ROW_ELEMS)
    _require(a.n_heads % a.n_kv_heads == 0, "attention.n_kv_heads", f"a divisor of {a.n_heads} heads", a.n_kv_heads)
    _integer("attention.n_heads x head_dim", a.n_heads * a.head_dim, MAX_ROW_ELEMS)
    _factor("attention.scale", a.scale)
    for axis in ("window", "chunk"):
        if getattr(a, axis) is not None:
            _integer(f"attention.{axis}", getattr(a, axis), MAX_VOCAB)
    _require(a.window is None or a.chunk is None, "attention.chunk", "no chunk beside a window", a.chunk)
    if a.clip is not None:
        _factor("attention.clip", a.clip)
        _require(a.clip > 0, "attention.clip", "a positive number", a.clip)
    if a.rope is not None:
        _rope(a.rope, a.head_dim)
    if a.qk_norm is not None:
        _norm("attention.qk_norm", a.qk_norm.norm)
    if a.temperature is not None:
        _integer("attention.temperature.interval", a.temperature.interval, MAX_POSITIONS)
        _factor("attention.temperature.scale", a.temperature.scale)
    if a.router is not None:
        _router(a.router)
        tiled = a.kv_map == "tile" and a.n_heads == a.router.top_k * a.n_kv_heads
        _require(tiled, "attention.n_heads", "top_k x n_kv_heads heads, tiled, in mixture of attention", a.n_heads)


def _latent(a: LatentAttention) -> None:
    for axis in ("n_heads", "kv_rank", "nope_dim", "rope_dim", "value_dim"):
        _integer(f"attention.{axis}", getattr(a, axis), MAX_ROW_ELEMS)
    if a.q_rank is not None:
        _integer("attention.q_rank", a.q_rank, MAX_ROW_ELEMS)
    _integer("attention.n_heads x value_dim", a.n_heads * a.value_dim, MAX_ROW_ELEMS)
    _require(a.rope.rotary_dim == a.rope_dim, "rope.rotary_dim", f"rope_dim, {a.rope_dim}", a.rope.rotary_dim)
    _rope(a.rope, a.rope_dim)
    _norm("attention.norm", a.norm)
    _factor("attention.scale", a.scale)
    if a.window is not None:
        _integer("attention.window", a.window, MAX_VOCAB)


def _router(r: Router) -> None:
    _integer("router.n_experts", r.n_experts, MAX_ROW_ELEMS)
    _integer("router.top_k", r.top_k, r.n_experts)
    _factor("router.scale", r.scale)
    if r.groups is not None:
        _groups(r.groups, r)
    if r.renormalise is not None:
        n = r.renormalise
        _require(0 <= n.eps <= 1, "router.renormalise.eps", "a number from 0 to 1", n.eps)
        _require(MIN_NORM_EPS <= n.floor <= 1, "router.renormalise.floor", f"from {MIN_NORM_EPS:g} to 1", n.floor)
    if r.method == "sparsemixer":
        _require(r.top_k == 2, "router.top_k", "2 with sparsemixer", r.top_k)
        _require(0 <= r.jitter <= 1, "router.jitter", "a number from 0 to 1", r.jitter)
        plain = r.groups is None and not r.correction
        _require(plain, "router.method", "neither groups nor correction with sparsemixer", "one of them")


def _groups(g: Groups, r: Router) -> None:
    _integer("router.groups.n_groups", g.n_groups, r.n_experts)
    _require(r.n_experts % g.n_groups == 0, "router.groups.n_groups", f"a divisor of {r.n_experts}", g.n_groups)
    _integer("router.groups.top_groups", g.top_groups, g.n_groups)
    size = r.n_experts // g.n_groups
    _require(g.score != "top2" or size >= 2, "router.group_score", "groups of two experts or more for top2", g.score)
    enough = g.fill == "zero" or g.top_groups * size >= r.top_k
    _require(enough, "router.groups.top_groups", f"groups that hold {r.top_k} experts together", g.top_groups)


def _ffn(f: Ffn) -> None:
    _integer("ffn.width", f.width, MAX_ROW_ELEMS)
    if f.clamp is not None:
        _factor("ffn.clamp.limit", f.clamp.limit)
        good = f.gated and f.activation == "silu" and f.clamp.limit > 0
        _require(good, "ffn.clamp", "a gate, silu and a positive limit with it", f.activation)
    if f.router is None:
        alone = f.widths is None and f.shared is None and not f.output_bias
        _require(alone, "router", "one, as there are widths, a shared block or an output bias", "none")
        return
    _router(f.router)
    if f.widths is not None:
        good = len(f.widths) == f.router.n_experts and min(f.widths) >= 1 and max(f.widths) == f.width
        _require(good, "ffn.widths", f"{f.router.n_experts} widths, the largest ffn.width", list(f.widths)[:8])
    if f.shared is not None:
        _integer("shared.width", f.shared.width, MAX_ROW_ELEMS)
