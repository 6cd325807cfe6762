# SPDX-License-Identifier: Apache-2.0
"""Which axes exclude each other, do not fit each other's sizes or are out of range: what NUMERICS.md gives no arithmetic for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from colibri.axes import NO_FFN, Attention, Convolution, Ffn, Hierarchy, LatentAttention, Layer, Norm, Rope, Router
from colibri.model import ModelConfig

MIN_POSITIVE = 2.0**-40
"""Of a norm's eps and of what weights are divided by: below it NUMERICS section 2 does not hold."""

MAX_ANGLE = 1 << 20
"""In radians: sincos is defined below (section 6). A context has at most so many positions."""
_SMALL = ("inv_freq", "renormalise.eps")
"""Where less than 2**-40 is harmless: a frequency is snapped, that eps is only added."""


def contradictions(config: ModelConfig) -> Iterator[str]:
    """What is impossible in a configuration, one sentence each, with its layer."""
    for name in ("embedding_scale", "logits_scale"):
        yield from _numbers(name, getattr(config, name))
    yield from _norm("final_norm", config.final_norm)
    yield from _encoder(config)
    for n, layer in enumerate(config.layers):
        yield from (f"layer {n}: {problem}" for problem in _layer(layer))
        rope = getattr(layer.mixer, "rope", None)
        if rope is not None and not all(0 <= x * min(config.max_seq, MAX_ANGLE) <= MAX_ANGLE for x in rope.inv_freq):
            yield f"layer {n}: rope: angles outside 0 to 2**20 radians"


def _numbers(name: str, value: object) -> Iterator[str]:
    """Every number in an axis: counts from 1 on, factors whose product with a snapped value is normal (section 2)."""
    if is_dataclass(value):
        for field in fields(value):
            yield from _numbers(f"{name}.{field.name}".removeprefix("."), getattr(value, field.name))
    elif isinstance(value, tuple):
        for n, part in enumerate(value):
            yield from _numbers(f"{name}[{n}]", part)
    elif isinstance(value, int) and not isinstance(value, bool) and value < 1 and name != "ffn.width":
        yield f"{name} is {value}"
    elif isinstance(value, float):
        least = 0.0 if value == 0 or any(small in name for small in _SMALL) else MIN_POSITIVE
        if not least <= abs(value) < 2.0**50:
            yield f"{name} is {value:g}: neither 0 nor of a magnitude from 2**-40 to 2**50"


def _encoder(config: ModelConfig) -> Iterator[str]:
    """Which layers see what: only an encoder's the whole source, only a decoder's behind an encoder its output."""
    encoder = config.encoder
    if encoder is not None:
        yield from _numbers("encoder", encoder)
        yield from _norm("encoder_norm", encoder.final_norm)
        if not encoder.n_layers < len(config.layers):
            yield f"encoder: {encoder.n_layers} of {len(config.layers)} layers"
    for n, layer in enumerate(config.layers):
        inside = n < config.n_encoder
        over = layer.mixer.over if isinstance(layer.mixer, Attention) else "past"
        if inside != (over == "source"):
            yield f"layer {n}: {over} is what it sees, and it is {'' if inside else 'not '}one of the encoder's"
        if over == "encoded" and encoder is None:
            yield f"layer {n}: cross-attention without an encoder"
        router = layer.ffn.router
        if router is not None and router.capacity is not None and not inside:
            yield f"layer {n}: router: a capacity where tokens come one by one"
        bias = layer.mixer.relative_bias if isinstance(layer.mixer, Attention) else None
        if bias is not None and config.relative_biases[over] != (bias, getattr(layer.mixer, "n_heads", 0)):
            yield f"layer {n}: relative_bias differs from that of another layer over the same"


def _layer(layer: Layer) -> Iterator[str]:
    yield from _numbers("", layer)
    for name in ("attn_norm", "ffn_norm", "attn_post_norm", "ffn_post_norm"):
        yield from _norm(name, getattr(layer, name))
    match layer.mixer:
        case Attention():
            yield from _attention(layer.mixer)
        case LatentAttention():
            yield from _norm("latent norm", layer.mixer.norm)
            yield from _rope(layer.mixer.rope, layer.mixer.rope_dim)
        case Convolution():  # nothing beside its numbers
            pass
    if not layer.ffn.width and (layer.ffn_norm is not None or layer.ffn_post_norm is not None):
        yield "norms of a feed-forward that is not there"
    yield from _ffn(layer.ffn)


def _norm(name: str, norm: Norm | None) -> Iterator[str]:
    if norm is None:
        return
    if norm.eps < MIN_POSITIVE:
        yield f"{name}: eps below 2**-40"
    if norm.bias and not norm.weight:
        yield f"{name}: a bias without a weight"


def _rope(rope: Rope, head_dim: int) -> Iterator[str]:
    if not 0 < rope.rotary_dim <= head_dim:
        yield f"rope: {rope.rotary_dim} rotary dimensions in heads of {head_dim}"


def _attention(a: Attention) -> Iterator[str]:
    if a.n_heads % a.n_kv_heads:
        yield f"attention: {a.n_heads} heads over {a.n_kv_heads} KV heads"
    if a.window is not None and a.chunk is not None:
        yield "attention: a window together with chunks"
    if a.rope is not None:
        yield from _rope(a.rope, a.head_dim)
    if a.qk_norm is not None:
        yield from _norm("qk_norm", a.qk_norm.norm)
    yield from _over(a)
    if a.router is None:
        return
    if a.kv_map != "tile" or a.n_heads != a.router.top_k * a.n_kv_heads:
        yield "mixture of attention: kv_map is not tile with top_k * n_kv_heads heads"
    for axis in ("qkv_bias", "clip", "qk_norm", "sinks", "gate"):
        if getattr(a, axis):
            yield f"mixture of attention together with {axis}"
    if a.router.side == "input" or a.router.capacity is not None:
        yield "mixture of attention with weights on the input or a capacity"
    if a.router.top_p is not None:
        yield "mixture of attention with a number of experts that differs from token to token"
    yield from _router(a.router)


def _over(a: Attention) -> Iterator[str]:
    """What sees other positions than those before it."""
    absent = ["rope", "window", "chunk", "temperature", "qk_norm", "clip", "sinks", "gate", "router"]
    for axis in {"past": [], "source": absent, "encoded": [*absent, "relative_bias"]}[a.over]:
        if getattr(a, axis):
            yield f"attention over the {a.over} together with {axis}"
    if a.relative_bias is None:
        return
    exact = a.relative_bias.n_buckets // (4 if a.over == "source" else 2)
    if not 1 <= exact < a.relative_bias.max_distance:
        yield f"attention: a relative_bias with {exact} buckets of one distance, up to {a.relative_bias.max_distance}"
    for axis in ("window", "chunk", "sinks", "router"):
        if getattr(a, axis):
            yield f"attention: a relative_bias together with {axis}"


def _router(r: Router) -> Iterator[str]:
    if not 1 <= r.top_k <= r.n_experts:
        yield f"router: {r.top_k} of {r.n_experts} experts"
    if r.capacity is not None and (r.top_k != 1 or r.side == "input"):
        yield "router: a capacity with more than one expert a token, or weights on the input"
    if r.method == "sparsemixer":
        if r.top_k != 2:
            yield f"router: sparsemixer picks two, not {r.top_k}"
        plain = Router(r.n_experts, r.top_k)
        for axis in ("score", "correction", "groups", "hierarchy", "top_p", "weights", "renormalise", "scale"):
            if getattr(r, axis) != getattr(plain, axis):
                yield f"router: sparsemixer together with {axis}"
    if r.hierarchy is not None:
        yield from _hierarchy(r, r.hierarchy)
    if r.top_p is not None:
        if not 0 < r.top_p <= 1:
            yield f"router: top_p is {r.top_p:g}: not above 0 and at most 1"
        if r.score == "raw" or r.weights != "score":
            yield "router: top_p is a share of softmax or sigmoid scores, which are the weights then"
    if r.renormalise is not None:
        if r.renormalise.floor < MIN_POSITIVE or r.renormalise.eps < 0:
            yield "router: renormalise with a floor below 2**-40 or a negative eps"
        if r.score == "raw" and r.weights == "score":
            yield "router: raw logits as weights cannot be renormalised, their sum may be 0"
    if r.groups is not None:
        yield from _groups(r)


def _hierarchy(r: Router, h: Hierarchy) -> Iterator[str]:
    plain = Router(r.n_experts, r.top_k)
    for axis in ("hidden", "bias", "score", "correction", "groups", "top_p", "weights", "renormalise", "scale"):
        if getattr(r, axis) != getattr(plain, axis):
            yield f"router: a hierarchy together with {axis}"
    if r.n_experts % h.n_groups or not 1 <= h.top_groups <= h.n_groups:
        yield f"router: {h.top_groups} of {h.n_groups} groups of {r.n_experts} experts"
    elif r.top_k % h.top_groups or r.top_k > h.top_groups * (r.n_experts // h.n_groups):
        yield f"router: {r.top_k} experts from {h.top_groups} groups of {r.n_experts // h.n_groups}, the same number from each"


def _groups(r: Router) -> Iterator[str]:
    g = r.groups
    assert g is not None
    if g.n_groups < 1 or r.n_experts % g.n_groups or not 1 <= g.top_groups <= g.n_groups:
        yield f"router: {g.top_groups} of {g.n_groups} groups of {r.n_experts} experts"
        return
    size = r.n_experts // g.n_groups
    if g.score == "top2" and size < 2:
        yield "router: the two largest of groups of one expert"
    if g.fill == "excluded" and r.top_k > g.top_groups * size:
        yield f"router: {r.top_k} experts from {g.top_groups} groups of {size}"


def _ffn(f: Ffn) -> Iterator[str]:
    if f.width == 0:
        if f != NO_FFN:
            yield "ffn: axes of a feed-forward without a width"
        return
    if f.clamp is not None and not (f.gated and f.activation == "silu"):
        yield "ffn: a clamp is of a gated silu"
    if f.router is None:
        for axis in ("widths", "shared", "output_bias"):
            if getattr(f, axis):
                yield f"ffn: {axis} without a router"
        return
    if f.shared is not None and f.shared.gated and f.shared.mix:
        yield "ffn: a shared block with a gate and a mix"
    if f.widths is not None and (len(f.widths) != f.router.n_experts or max(f.widths) != f.width):
        yield f"ffn: {len(f.widths)} widths up to {max(f.widths)} of {f.router.n_experts} experts up to {f.width}"
    yield from _router(f.router)
