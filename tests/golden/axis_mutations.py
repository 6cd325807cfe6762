# SPDX-License-Identifier: Apache-2.0
"""Mistakes on the axes that only some families have, each with the small checkpoint that must show it.

A witness is an oracle of tests/oracles, whose answers are the framework's, or one of synthetic.AXES, whose answers are the
float64 simulation's: where no oracle's numbers reach the limit in question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colibri.axes import Attention, Layer, Mixer, Norm, Renormalise, Rope, Router, Shared
from colibri.model import ModelConfig
from colibri_sim.golden import GoldenModel
from colibri_sim.golden import functions as f
from colibri_sim.golden import vectors as v

from .mutations import Method, Mutation, each_layer

Change = Callable[[ModelConfig], ModelConfig]
G = GoldenModel


@dataclass(frozen=True)
class Witnessed:
    """A mutation and the names of what must show it, each of them."""

    mutation: Mutation
    witnesses: tuple[str, ...]


AXIS_MUTATIONS: dict[str, Witnessed] = {}


def config(name: str, change: Change, *witnesses: str) -> None:
    assert name not in AXIS_MUTATIONS
    AXIS_MUTATIONS[name] = Witnessed(Mutation({}, change), witnesses)


def method(name: str, target: str, *witnesses: str) -> Callable[[Method], Method]:
    def register(function: Method) -> Method:
        assert name not in AXIS_MUTATIONS
        assert hasattr(GoldenModel, target)
        AXIS_MUTATIONS[name] = Witnessed(Mutation({target: function}, lambda c: c), witnesses)
        return function

    return register


def layers(**changes: Any) -> Change:
    return each_layer(lambda layer: replace(layer, **changes))


def mixers(**changes: Any) -> Change:
    """Change every mixer that has all of these fields."""

    def change(mixer: Mixer) -> Mixer:
        return replace(mixer, **changes) if all(hasattr(mixer, name) for name in changes) else mixer

    return each_layer(lambda layer: replace(layer, mixer=change(layer.mixer)))


def ffns(**changes: Any) -> Change:
    return each_layer(
        lambda layer: layer if layer.ffn.router is None else replace(layer, ffn=replace(layer.ffn, **changes))
    )


def every_ffn(**changes: Any) -> Change:
    return each_layer(lambda layer: replace(layer, ffn=replace(layer.ffn, **changes)))


def routers(change: Callable[[Router], Router]) -> Change:
    def each(layer: Layer) -> Layer:
        ffn = layer.ffn
        return layer if ffn.router is None else replace(layer, ffn=replace(ffn, router=change(ffn.router)))

    return each_layer(each)


def routing(**changes: Any) -> Change:
    return routers(lambda r: replace(r, **changes))


def groups(**changes: Any) -> Change:
    return routers(lambda r: replace(r, groups=replace(r.groups, **changes)) if r.groups is not None else r)


def hierarchies(**changes: Any) -> Change:
    return routers(lambda r: replace(r, hierarchy=replace(r.hierarchy, **changes)) if r.hierarchy is not None else r)


def shared(**changes: Any) -> Change:
    def each(layer: Layer) -> Layer:
        block = layer.ffn.shared
        return layer if block is None else replace(layer, ffn=replace(layer.ffn, shared=replace(block, **changes)))

    return each_layer(each)


def ropes(**changes: Any) -> Change:
    def each(layer: Layer) -> Layer:
        rope = getattr(layer.mixer, "rope", None)
        return layer if rope is None else replace(layer, mixer=replace(layer.mixer, rope=replace(rope, **changes)))  # type: ignore[call-arg]  # it has one

    return each_layer(each)


def attentions(change: Callable[[Attention], Attention]) -> Change:
    return each_layer(
        lambda layer: replace(layer, mixer=change(layer.mixer)) if isinstance(layer.mixer, Attention) else layer
    )


def qk(**changes: Any) -> Change:
    return attentions(lambda a: a if a.qk_norm is None else replace(a, qk_norm=replace(a.qk_norm, **changes)))


# --- norms and the residual stream

RMS = Norm(1e-5)
config("RMS for layer norm", lambda c: every_norm(c, kind="rms"), "phimoe", "dbrx")
config("norm bias lost", lambda c: every_norm(c, bias=False), "phimoe")
config("attention post norm lost", layers(attn_post_norm=None), "afmoe", "flex_olmo")
config("feed-forward post norm lost", layers(ffn_post_norm=None), "afmoe", "flex_olmo")
config("residual factor lost", layers(residual=1.0), "granitemoe", "granitemoeshared")
config("embedding scale lost", lambda c: replace(c, embedding_scale=1.0), "granitemoe", "afmoe")
config("logits scale lost", lambda c: replace(c, logits_scale=1.0), "granitemoe")
config("logits multiplied where they are divided", lambda c: replace(c, logits_scale=1 / c.logits_scale), "granitemoe")
config("head bias lost", lambda c: replace(c, head_bias=False), "phimoe")


def every_norm(c: ModelConfig, **changes: Any) -> ModelConfig:
    def each(layer: Layer) -> Layer:
        return replace(
            layer, **{n: replace(getattr(layer, n), **changes) for n in ("attn_norm", "ffn_norm") if getattr(layer, n)}
        )

    return replace(each_layer(each)(c), final_norm=replace(c.final_norm, **changes))


@method("residual factor on the stream, not on the branch", "residual", "granitemoe")
def _(self: G, x: Any, y: Any, factor: float) -> Any:
    return f.snap(x * np.float32(factor) + y)


@method("norms before, not after", "layer_norm", "flex_olmo")
def _(self: G, call: Any, name: str, norm: Any, x: Any) -> Any:
    kind, _, place = name.partition("_")
    return x if place == "post_norm" else self.norm(x, call.name(f"{kind}_post_norm"), RMS)


# --- attention

config("biases of q, k, v lost", mixers(qkv_bias=False), "qwen2", "phimoe", "gpt_oss", "glm4_moe")
config("bias of o lost", mixers(o_bias=False), "phimoe", "gpt_oss", "llama_bias", "jetmoe")
config("clip lost", mixers(clip=None), "olmoe", "dbrx")
config(
    "norm of q and k lost", mixers(qk_norm=None), "olmoe", "qwen3", "hunyuan_v1_moe", "llama4", "lfm2_moe", "minimax_m2"
)
config("norm of q and k after RoPE", qk(over="head_after"), "qwen3", "glm4_moe", "afmoe")
config("norm of q and k before RoPE", qk(over="head"), "hunyuan_v1_moe")
config("RoPE factor lost", ropes(factor=1.0), "gpt_oss", "phimoe_longrope", "deepseek_v2")
config("halves for adjacent pairs", ropes(pairing="half"), "llama4", "ernie4_5_moe", "deepseek_v2", "deepseek_v3")
config("chunk lost", mixers(chunk=None), "llama4", "llama4_long")
config(
    "chunk one longer", attentions(lambda a: replace(a, chunk=a.chunk + 1) if a.chunk else a), "llama4", "llama4_long"
)
config("a window for chunks", attentions(lambda a: replace(a, window=a.chunk, chunk=None)), "llama4")
config("window of some layers lost", mixers(window=None), "gpt_oss", "afmoe", "qwen2", "gpt_oss_long", "afmoe_long")
config("the window in every layer", attentions(lambda a: replace(a, window=5)), "gpt_oss", "afmoe", "qwen2")
config("sinks lost", mixers(sinks=False), "gpt_oss", "gpt_oss_long")
config("temperature lost", mixers(temperature=None), "llama4", "llama4_long")
config("temperature of twice the interval", attentions(lambda a: heated(a, interval=2)), "llama4", "llama4_long")
config("temperature twice as strong", attentions(lambda a: heated(a, scale=2)), "llama4")
config(
    "RoPE in the layers without",
    lambda c: attentions(lambda a: replace(a, rope=c.layers[0].mixer.rope))(c),
    "llama4",
    "afmoe",
)  # type: ignore[union-attr]  # attention
config("output gate lost", mixers(gate=False), "afmoe")


def heated(a: Attention, interval: int = 1, scale: float = 1) -> Attention:
    t = a.temperature
    return a if t is None else replace(a, temperature=replace(t, interval=t.interval * interval, scale=t.scale * scale))


@method("the temperature of the position before", "heat_query", "llama4", "llama4_long")
def _(self: G, heat: Any, q: Any) -> Any:
    return G.heat_query(self, np.append(np.float32(1), heat[:-1]), q)


@method("the last dimensions rotated", "rotary_pairs", "glm4_moe", "minimax_m2")
def _(self: G, rope: Rope) -> Any:
    first, second = G.rotary_pairs(self, rope)
    return first + (12 - rope.rotary_dim), second + (12 - rope.rotary_dim)


@method("RoPE factor on the sine only", "rotate", "gpt_oss", "deepseek_v2")
def _(self: G, x: Any, first: Any, second: Any, sin: Any, cos: Any) -> Any:
    length = np.sqrt(sin**2 + cos**2)
    return G.rotate(self, x, first, second, sin, f.snap(cos / length))


@method("clip before the norm", "qk_norm", "olmoe")
def _(self: G, call: Any, qk_norm: Any, q: Any, k: Any) -> Any:
    return G.qk_norm(self, call, qk_norm, self.clip(0.8, q), self.clip(0.8, k))


@method("only the upper clip", "clip", "dbrx", "olmoe")
def _(self: G, limit: float, x: Any) -> Any:
    return np.minimum(x, np.float32(limit))


@method("norm weights of q for k", "norm", "qwen3", "olmoe")
def _(self: G, x: Any, name: str, norm: Norm) -> Any:
    weight = self.vector(f"{name.replace('k_norm', 'q_norm')}.weight")[: x.shape[-1]]
    return v.scaled(v.rms(x, norm.eps), weight, None)


@method("the norm over the vector for each head", "qk_norm", "olmoe", "minimax_m2")
def _(self: G, call: Any, qk_norm: Any, q: Any, k: Any) -> Any:
    out = []
    for x, name in ((q, "attn.q_norm"), (k, "attn.k_norm")):
        heads = v.rms(x.reshape(len(x), -1, self.config.layers[0].mixer.head_dim), qk_norm.norm.eps)  # type: ignore[union-attr]
        out.append(v.scaled(heads.reshape(x.shape), self.vector(call.name(f"{name}.weight")), None))
    return out[0], out[1]


@method("a chunk's first position unseen", "visible", "llama4")
def _(self: G, a: Attention, positions: Any, end: int) -> Any:
    seen = G.visible(self, a, positions, end)
    if a.chunk is not None:
        seen &= (np.arange(end) % a.chunk != 0) | (np.arange(end) == positions[:, None])
    return seen


@method("sinks in reverse", "vector", "gpt_oss")
def _(self: G, name: str) -> Any:
    return G.vector(self, name)[::-1] if name.endswith("sinks") else G.vector(self, name)


@method("one sink for all heads", "vector", "gpt_oss")
def _(self: G, name: str) -> Any:
    return G.vector(self, name)[:1].repeat(4) if name.endswith("sinks") else G.vector(self, name)


method("silu for the gate's sigmoid", "gate_output", "afmoe")(
    lambda self, gate, o, n: f.snap(o * f.silu(self.project(gate, n)))
)
method("the gate reversed", "gate_output", "afmoe")(
    lambda self, gate, o, n: f.snap(o * f.sigmoid(-self.project(gate, n)))
)
method("KV heads interleaved, not tiled", "kv_head", "jetmoe")(
    lambda self, a, head: head // (a.n_heads // a.n_kv_heads)
)


# --- mixture of attention


@method("the first slot's query expert in all slots", "split", "jetmoe")
def _(self: G, x: Any, heads: int) -> Any:
    parts = G.split(self, x, heads)
    return np.tile(parts[:, : heads // 3], (1, 3, 1)) if heads == self.config.layers[0].mixer.n_heads else parts  # type: ignore[union-attr]


@method("attention experts all weigh the same", "route", "jetmoe")
def _(self: G, call: Any, router: Router, name: str, n: Any, *, trace: str = "") -> Any:
    ids, weights = G.route(self, call, router, name, n, trace=trace)
    return ids, np.full_like(weights, 1 / 3) if trace else weights


@method("attention experts chosen by the feed-forward's router", "route", "jetmoe")
def _(self: G, call: Any, router: Router, name: str, n: Any, *, trace: str = "") -> Any:
    return G.route(self, call, router, "router", n, trace=trace)


# --- latent attention

config("latent scale of the nope part only", mixers(nope_dim=10, scale=10**-0.5), "deepseek_v2", "deepseek_v3")
config("biases of latent attention lost", mixers(kv_rank=20, bias=False), "deepseek_v3")
config("eps of the latent norm", each_layer(lambda x: latent_eps(x, 1e-2)), "deepseek_v2", "deepseek_v3")


def latent_eps(layer: Layer, eps: float) -> Layer:
    return replace(layer, mixer=replace(layer.mixer, norm=Norm(eps)))  # type: ignore[call-arg]  # latent attention


@method("the latent not normed", "norm", "deepseek_v2", "deepseek_v3")
def _(self: G, x: Any, name: str, norm: Norm) -> Any:
    return x if name.endswith("kv_a_norm") else G.norm(self, x, name, norm)


@method("the query's latent not normed", "norm", "deepseek_v3", "deepseek_v2_long")
def _(self: G, x: Any, name: str, norm: Norm) -> Any:
    return x if name.endswith("q_a_norm") else G.norm(self, x, name, norm)


@method("the rotary key not rotated", "rope", "deepseek_v2", "deepseek_v3")
def _(self: G, call: Any, rope: Rope, q: Any, k: Any) -> Any:
    return G.rope(self, call, rope, q, k)[0], k


method("the up-projection of keys left out", "absorb", "deepseek_v2")(
    lambda self, call, nope: np.pad(nope, ((0, 0), (0, 0), (0, 10)))
)


@method("values from the rotary end of the latent", "attend", "deepseek_v2", "deepseek_v3")
def _(self: G, call: Any, a: Attention, q: Any, keys: Any, values: Any) -> Any:
    return G.attend(self, call, a, q, keys, keys[..., -values.shape[-1] :])


# --- convolution

method("taps reversed", "convolve", "lfm2_moe")(lambda self, taps, g, call: G.convolve(self, taps[:, ::-1], g, call))
method("only the present tap", "convolve", "lfm2_moe")(
    lambda self, taps, g, call: G.convolve(self, taps[:, -1:], g, call)
)
method("the oldest tap lost", "convolve", "lfm2_moe")(
    lambda self, taps, g, call: G.convolve(self, taps[:, 1:], g, call)
)
config("biases of the convolution lost", mixers(taps=3, bias=False), "lfm2_moe")


@method("gates of the convolution exchanged", "linear", "lfm2_moe")
def _(self: G, name: str, x: Any, *, bias: bool) -> Any:
    y = G.linear(self, name, x, bias=bias)
    return (
        np.concatenate([*np.split(y, 3, axis=1)[1::-1], np.split(y, 3, axis=1)[2]], axis=1)
        if name.endswith("conv.in")
        else y
    )


@method("a convolution that looks ahead", "convolve", "lfm2_moe")
def _(self: G, taps: Any, g: Any, call: Any) -> Any:
    return G.convolve(self, taps, np.concatenate([g[1:], g[-1:]]), call)


# --- feed-forward

config("silu for gelu", every_ffn(activation="silu"), "llama_gelu", "gelu_erf")
config("gelu of the error function for that of tanh", every_ffn(activation="gelu_erf"), "llama_gelu", "gelu_tanh")
config("relu for its square", every_ffn(activation="relu"), "relu2, not gated")
config("biases of the experts lost", every_ffn(bias=False), "gpt_oss", "llama_bias")
config("clamped form lost", every_ffn(clamp=None), "gpt_oss", "clamp")
config("output bias of the experts lost", ffns(output_bias=False), "jetmoe")
config("shared block lost", ffns(shared=None), *("qwen2_moe", "deepseek", "deepseek_v2", "deepseek_v3", "granitemoeshared"),
       *("llama4", "ernie4_5_moe", "glm4_moe", "afmoe", "hunyuan_v1_moe"))  # fmt: skip
config("shared block not gated", each_layer(lambda x: gate_shared(x, gated=False)), "qwen2_moe")


def gate_shared(layer: Layer, *, gated: bool) -> Layer:
    shared = layer.ffn.shared
    return layer if shared is None else replace(layer, ffn=replace(layer.ffn, shared=Shared(shared.width, gated)))


@method("no clamp of the gate", "clamped", "clamp")
def _(self: G, clamp: Any, gate: Any, up: Any) -> Any:
    return f.snap(
        f.snap(np.clip(up, -clamp.limit, clamp.limit) + 1) * f.snap(gate * f.sigmoid(f.snap(gate * np.float32(1.702))))
    )


@method("the gate clamped from below too", "clamped", "clamp")
def _(self: G, clamp: Any, gate: Any, up: Any) -> Any:
    return G.clamped(self, clamp, np.maximum(gate, -np.float32(clamp.limit)), up)


@method("no clamp of up", "clamped", "clamp")
def _(self: G, clamp: Any, gate: Any, up: Any) -> Any:
    g = np.minimum(gate, np.float32(clamp.limit))
    return f.snap(f.snap(up + 1) * f.snap(g * f.sigmoid(f.snap(g * np.float32(clamp.alpha)))))


method("alpha of one", "clamped", "gpt_oss")(lambda self, c, g, u: G.clamped(self, replace(c, alpha=1.0), g, u))
method("up not plus one", "clamped", "gpt_oss")(lambda self, c, g, u: G.clamped(self, c, g, f.snap(u - np.float32(1))))


# --- router

config("router bias lost", routing(bias=False), "gpt_oss")
config(
    "correction lost",
    routing(correction=False),
    *("deepseek_v3", "glm4_moe", "lfm2_moe", "ernie4_5_moe", "minimax_m2", "afmoe"),
)
config(
    "sigmoid for softmax scores", routing(score="sigmoid"), "qwen2_moe", "deepseek_v2", "olmoe", "ernie4_5_moe", "dbrx"
)
config(
    "softmax for sigmoid scores", routing(score="softmax"), "deepseek_v3", "glm4_moe", "lfm2_moe", "minimax_m2", "afmoe"
)
config(
    "softmax of the chosen for softmax of all",
    routing(score="raw", weights="softmax", renormalise=None),
    "qwen2_moe",
    "olmoe",
)
config(
    "softmax of all for softmax of the chosen",
    routing(score="softmax", weights="score"),
    "granitemoe",
    "gpt_oss",
    "llama_moe",
    "hunyuan_v1_moe",
)
config("softmax for the sigmoid of the chosen", routing(weights="softmax"), "llama4", "llama4_long")
config("weights on the output, not on the input", routing(side="output"), "llama4", "llama4_long")
config(
    "renormalisation lost",
    routing(renormalise=None),
    "qwen3_moe",
    "deepseek_v3",
    "ernie4_5_moe",
    "lfm2_moe",
    "afmoe",
    "dbrx",
)
config(
    "renormalisation where there is none",
    routing(renormalise=Renormalise()),
    "qwen3_moe_nonorm",
    "olmoe",
    "deepseek_v2",
)
config("sum for l2 norm", routing(renormalise=Renormalise()), "dbrx")
config("eps of the renormalisation", routing(renormalise=Renormalise(eps=1e-2)), "lfm2_moe", "deepseek_v3")
config("floor of the renormalisation", routing(renormalise=Renormalise()), "floor")
config(
    "routed scale lost",
    routing(scale=1.0),
    *("deepseek_v2", "deepseek_v3", "glm4_moe", "lfm2_moe", "afmoe", "llama_moe"),
)
config("groups lost", routing(groups=None), "groups by maximum", "deepseek_v2_groups", "deepseek_v3", "glm4_moe")
config("one group more", groups(top_groups=3), "deepseek_v3", "glm4_moe")
config("one group fewer", groups(top_groups=1), "deepseek_v2_groups")
config("groups by their maximum", groups(score="max"), "deepseek_v3", "glm4_moe")
config("groups by their two largest", groups(score="top2"), "groups by maximum")
config("other groups at 0, not excluded", groups(fill="zero"), "groups below zero")
config("a share of the probabilities lost", routing(top_p=None), "dynamic_moe", "dynamic_moe_at_most")
config("a smaller share", routing(top_p=0.45), "dynamic_moe", "dynamic_moe_at_most")
config("one expert more at most", routing(top_k=4), "dynamic_moe_at_most")
config("a share renormalised", routing(renormalise=Renormalise()), "dynamic_moe", "dynamic_moe_at_most")
config("a flat router for a hierarchy", routing(hierarchy=None), "hierarchical_moe")
config("one group of four for two of two", hierarchies(top_groups=1), "hierarchical_moe")
config("mix of experts and fixed block lost", shared(mix=False), "pr_moe")
config("top-k for sparsemixer", routing(method="top_k", jitter=0.0), "phimoe", "phimoe_longrope")
config("jitter of sparsemixer", routing(jitter=0.05), "phimoe", "phimoe_longrope")


def _kept(self: G, name: str, s: Any) -> Any:
    self.corrected = G.correct(self, name, s)  # type: ignore[attr-defined]  # for the other half of the mutant
    return self.corrected  # type: ignore[attr-defined]


AXIS_MUTATIONS["weights with the correction"] = Witnessed(
    Mutation(
        {
            "correct": _kept,
            "expert_weights": lambda self, router, s, ids: G.expert_weights(self, router, self.corrected, ids),
        },
        lambda c: c,
    ),
    ("deepseek_v3", "glm4_moe", "lfm2_moe", "ernie4_5_moe", "minimax_m2", "afmoe"),
)


@method("groups of every n-th expert", "limit_to_groups", "groups by maximum", "deepseek_v2_groups", "deepseek_v3")
def _(self: G, groups: Any, c: Any) -> Any:
    order = np.arange(c.shape[1]).reshape(-1, groups.n_groups).T.reshape(-1)
    out = np.empty_like(c)
    out[:, order] = G.limit_to_groups(self, groups, c[:, order])
    return out


@method("the first groups always", "group_values", "deepseek_v2_groups", "deepseek_v3")
def _(self: G, groups: Any, c: Any) -> Any:
    return np.broadcast_to(-np.arange(c.shape[1], dtype=np.float32), c.shape[:2])


@method("sparsemixer's second pick like its first", "sparsemixer", "phimoe")
def _(self: G, router: Router, z: Any) -> Any:
    ids, weights = G.sparsemixer(self, router, z)
    near = z.max(axis=1, keepdims=True) - z <= np.maximum(np.abs(z), z.max(axis=1, keepdims=True)) * 2 * router.jitter
    e = np.where(near, np.exp(z - z.max(axis=1, keepdims=True)), 0)
    second = np.take_along_axis(np.exp(z - z.max(axis=1, keepdims=True)), ids[:, 1:].astype(np.int64), axis=1)
    return ids, np.concatenate([weights[:, :1], f.snap(second / e.sum(axis=1, keepdims=True))], axis=1)


@method("the gate's tanh lost", "router_logits", "llama_moe")
def _(self: G, router: Router, name: str, n: Any) -> Any:
    return self.float_product(f"{name}.weight", self.float_product(f"{name}.hidden.weight", n))


@method("the shared block weighted like an expert", "shared_weight", "deepseek", "granitemoeshared", "qwen2_moe")
def _(self: G, call: Any, shared: Any, n: Any) -> Any:
    return np.full((len(n), 1), 1 / 3, np.float32)


@method("the expert that reaches the share left out", "shortest_prefix", "dynamic_moe", "dynamic_moe_at_most")
def _(self: G, p: Any, s: Any, ids: Any) -> Any:
    kept = G.shortest_prefix(self, p, s, ids)
    last = (kept >= 0).sum(axis=1) - 1
    shorter = kept.copy()
    shorter[np.arange(len(kept)), last] = -1
    return np.where((last > 0)[:, None], shorter, kept)


@method("the gates' values added", "by_hierarchy", "hierarchical_moe", "hierarchy")
def _(self: G, router: Router, h: Any, primary: Any, z: Any) -> Any:
    ids, w = G.by_hierarchy(self, router, h, primary, z)
    _, outer = self.best(primary, h.top_groups)
    outer = outer.repeat(w.shape[1] // h.top_groups, axis=1)
    return ids, f.snap((w / outer + outer) / 2)


@method("the primary gate's value lost", "by_hierarchy", "hierarchical_moe", "hierarchy")
def _(self: G, router: Router, h: Any, primary: Any, z: Any) -> Any:
    ids, w = G.by_hierarchy(self, router, h, primary, z)
    _, outer = self.best(primary, h.top_groups)
    return ids, f.snap(w / outer.repeat(w.shape[1] // h.top_groups, axis=1))


@method("experts and fixed block exchanged in the mix", "shared_mix", "pr_moe", "mixed shared block")
def _(self: G, call: Any, n: Any) -> Any:
    return G.shared_mix(self, call, n)[:, ::-1]


@method("the mix without its bias", "shared_mix", "pr_moe")
def _(self: G, call: Any, n: Any) -> Any:
    return v.softmax(self.float_product(call.name("shared_mix.weight"), n))
