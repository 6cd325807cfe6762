# SPDX-License-Identifier: Apache-2.0
"""Mistakes that an implementation of the model could make: each is the golden model with one thing wrong.

A mutation is a class derived from GoldenModel, or a change of the configuration or of one stored tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colibri.axes import Attention, Layer, Norm, Rope, Router
from colibri.model import ModelConfig
from colibri_sim.golden import GoldenModel
from colibri_sim.golden import functions as f
from colibri_sim.golden import vectors as v

Method = Callable[..., Any]


@dataclass(frozen=True)
class Mutation:
    """Replaced methods of GoldenModel, and a change of the configuration."""

    methods: dict[str, Method]
    config: Callable[[ModelConfig], ModelConfig]

    def kind(self) -> type[GoldenModel]:
        return type("Mutant", (GoldenModel,), dict(self.methods))


MUTATIONS: dict[str, Mutation] = {}


def _same(config: ModelConfig) -> ModelConfig:
    return config


def method(name: str, target: str) -> Callable[[Method], Method]:
    """Register a mutation that replaces one method."""

    def register(function: Method) -> Method:
        assert name not in MUTATIONS
        assert hasattr(GoldenModel, target)
        MUTATIONS[name] = Mutation({target: function}, _same)
        return function

    return register


def config(name: str, change: Callable[[ModelConfig], ModelConfig]) -> None:
    """Register a mutation of the configuration."""
    assert name not in MUTATIONS
    MUTATIONS[name] = Mutation({}, change)


def each_layer(change: Callable[[Layer], Layer]) -> Callable[[ModelConfig], ModelConfig]:
    return lambda c: replace(c, layers=tuple(change(layer) for layer in c.layers))


def attention(change: Callable[[Attention], Attention]) -> Callable[[ModelConfig], ModelConfig]:
    return each_layer(
        lambda layer: replace(layer, mixer=change(layer.mixer)) if isinstance(layer.mixer, Attention) else layer
    )


def rope(change: Callable[[Rope], Rope]) -> Callable[[ModelConfig], ModelConfig]:
    return attention(lambda a: a if a.rope is None else replace(a, rope=change(a.rope)))


def norms(change: Callable[[Norm], Norm]) -> Callable[[ModelConfig], ModelConfig]:
    """Every norm of a model changed, but for those inside a mixer."""

    def each(layer: Layer) -> Layer:
        names = ("attn_norm", "ffn_norm", "attn_post_norm", "ffn_post_norm")
        present = {name: norm for name in names if (norm := getattr(layer, name)) is not None}
        return replace(layer, **{name: change(norm) for name, norm in present.items()})

    return lambda c: replace(each_layer(each)(c), final_norm=change(c.final_norm))


def top_k(step: int) -> Callable[[ModelConfig], ModelConfig]:
    def change(layer: Layer) -> Layer:
        router = layer.ffn.router
        if router is None:
            return layer
        return replace(layer, ffn=replace(layer.ffn, router=replace(router, top_k=router.top_k + step)))

    return each_layer(change)


def window(step: int) -> Callable[[ModelConfig], ModelConfig]:
    return attention(lambda a: a if a.window is None else replace(a, window=a.window + step))


# --- activation and feed-forward

GELU = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), otypes=[np.float32])
TANH_GELU = np.vectorize(
    lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), otypes=[np.float32]
)

method("gelu for silu", "activate")(lambda self, ffn, g, u: f.snap(GELU(g) * u))
method("tanh gelu for silu", "activate")(lambda self, ffn, g, u: f.snap(TANH_GELU(g) * u))
method("relu for silu", "activate")(lambda self, ffn, g, u: f.snap(np.maximum(g, np.float32(0)) * u))
method("no activation", "activate")(lambda self, ffn, g, u: f.snap(g * u))
method("sigmoid for silu", "activate")(lambda self, ffn, g, u: f.snap(f.sigmoid(g) * u))
method("silu of 1.702 x", "activate")(lambda self, ffn, g, u: f.snap(f.snap(g * f.sigmoid(np.float32(1.702) * g)) * u))
method("gate and up swapped", "activate")(lambda self, ffn, g, u: f.snap(f.silu(u) * g))
method("silu after the product", "activate")(lambda self, ffn, g, u: f.silu(f.snap(g * u)))
method("no up", "activate")(lambda self, ffn, g, u: f.silu(g))
method("no gate", "activate")(lambda self, ffn, g, u: u)

# --- norm


def rms(x: Any, eps: float, divisor: int) -> Any:
    return f.snap(x * f.rsqrt(f.snap(v.dot8(x, x))[..., None] / np.float32(divisor) + np.float32(eps)))


config("eps 1e-6 for 1e-5", norms(lambda n: replace(n, eps=n.eps / 10)))
config("eps ten times larger", norms(lambda n: replace(n, eps=n.eps * 10)))
config("eps left out", norms(lambda n: replace(n, eps=2.0**-40)))


@method("eps outside the root", "norm")
def _(self: GoldenModel, x: Any, name: str, norm: Norm) -> Any:
    root = np.sqrt(v.dot8(x, x) / np.float32(x.shape[-1]))[..., None] + np.float32(norm.eps)
    return f.snap(x / root * self.vector(f"{name}.weight"))


@method("mean subtracted in the norm", "norm")
def _(self: GoldenModel, x: Any, name: str, norm: Norm) -> Any:
    return GoldenModel.norm(self, x, name, replace(norm, kind="layer"))


def rms_over(divisor: Callable[[int], int], offset: float) -> Method:
    def mutant(self: GoldenModel, x: Any, name: str, norm: Norm) -> Any:
        weight = self.vector(f"{name}.weight") + np.float32(offset)
        return f.snap(rms(x, norm.eps, divisor(x.shape[-1])) * weight)

    return mutant


method("sum for mean in the norm", "norm")(rms_over(lambda n: 1, 0))
method("norm over H - 1", "norm")(rms_over(lambda n: n - 1, 0))
method("norm weights plus one", "norm")(rms_over(lambda n: n, 1))
config("norm weights missing", norms(lambda n: replace(n, weight=False)))
method("no norm at all", "norm")(lambda self, x, name, norm: x)
method("no final norm", "final_norm")(lambda self, call, x: x)


@method("attention's norm weights before the experts", "norm")
def _(self: GoldenModel, x: Any, name: str, norm: Norm) -> Any:
    return GoldenModel.norm(self, x, name.replace("ffn_norm", "attn_norm"), norm)


@method("first layer's norm weights everywhere", "norm")
def _(self: GoldenModel, x: Any, name: str, norm: Norm) -> Any:
    return GoldenModel.norm(self, x, name.replace("layers.1.", "layers.0."), norm)


# --- RoPE

config("adjacent pairs for halves", rope(lambda r: replace(r, pairing="adjacent")))
config("half the rotary dimensions", rope(lambda r: replace(r, inv_freq=r.inv_freq[: len(r.inv_freq) // 2])))
config("theta 500000", rope(lambda r: replace(r, inv_freq=tuple(_frequencies(r, 500000.0)))))
config("frequencies all one", rope(lambda r: replace(r, inv_freq=(1.0,) * len(r.inv_freq))))
config("frequencies reversed", rope(lambda r: replace(r, inv_freq=r.inv_freq[::-1])))
config("frequencies doubled", rope(lambda r: replace(r, inv_freq=tuple(2 * x for x in r.inv_freq))))
config("frequencies of the default RoPE", rope(lambda r: replace(r, inv_freq=tuple(_frequencies(r, 10000.0)))))
config("last frequency lost", rope(lambda r: replace(r, inv_freq=(*r.inv_freq[:-1], 0.0))))


def _frequencies(r: Rope, theta: float) -> list[float]:
    n = len(r.inv_freq)
    return [float(np.float32(theta ** (-i / n))) for i in range(n)]


def _rope(q: bool, k: bool) -> Method:
    def mutant(self: GoldenModel, call: Any, r: Rope, xq: Any, xk: Any) -> Any:
        turned = GoldenModel.rope(self, call, r, xq, xk)
        return turned[0] if q else xq, turned[1] if k else xk

    return mutant


method("no RoPE", "rope")(_rope(q=False, k=False))
method("RoPE on q only", "rope")(_rope(q=True, k=False))
method("RoPE on k only", "rope")(_rope(q=False, k=True))


@method("the position of q one too high", "rope")
def _(self: GoldenModel, call: Any, r: Rope, q: Any, k: Any) -> Any:
    ahead = replace(call, positions=call.positions + 1)
    return GoldenModel.rope(self, ahead, r, q, k)[0], GoldenModel.rope(self, call, r, q, k)[1]


@method("positions count from the end", "rope")
def _(self: GoldenModel, call: Any, r: Rope, q: Any, k: Any) -> Any:
    return GoldenModel.rope(self, replace(call, positions=call.positions[::-1].copy()), r, q, k)


@method("sine and cosine swapped", "rotate")
def _(self: GoldenModel, x: Any, first: Any, second: Any, sin: Any, cos: Any) -> Any:
    # Turning by pi/2 - theta instead: the phase cancels between q and k, the direction does not.
    return GoldenModel.rotate(self, x, first, second, cos, sin)


@method("a sign lost in the rotation", "rotate")
def _(self: GoldenModel, x: Any, first: Any, second: Any, sin: Any, cos: Any) -> Any:
    out = GoldenModel.rotate(self, x, first, second, sin, cos)
    out[..., first] = f.snap(x[..., first] * cos + x[..., second] * sin)
    return out


@method("v rotated too", "attend")
def _(self: GoldenModel, call: Any, a: Attention, q: Any, keys: Any, values: Any) -> Any:
    everywhere = replace(call, positions=np.arange(len(values)), trace=None)
    assert a.rope is not None
    return GoldenModel.attend(self, call, a, q, keys, GoldenModel.rope(self, everywhere, a.rope, values, values)[0])


# --- attention

config("scale missing", attention(lambda a: replace(a, scale=1.0)))
config("scale applied twice", attention(lambda a: replace(a, scale=a.scale**2)))
config("scale of the hidden size", lambda c: attention(lambda a: replace(a, scale=c.hidden_size**-0.5))(c))
config("scale of one dimension more", attention(lambda a: replace(a, scale=(a.head_dim + 1) ** -0.5)))
config("window one too wide", window(1))
config("window one too narrow", window(-1))
config("no window", attention(lambda a: replace(a, window=None)))
config("a window where there is none", attention(lambda a: replace(a, window=a.window or 16)))

method("KV head by remainder", "kv_head")(lambda self, a, head: head % a.n_kv_heads)
method("first KV head for all", "kv_head")(lambda self, a, head: 0)
method("KV heads reversed", "kv_head")(lambda self, a, head: (a.n_heads - 1 - head) // (a.n_heads // a.n_kv_heads))


@method("no causal mask", "visible")
def _(self: GoldenModel, a: Attention, positions: Any, end: int) -> Any:
    return np.ones((len(positions), end), dtype=bool)


@method("a position does not see itself", "visible")
def _(self: GoldenModel, a: Attention, positions: Any, end: int) -> Any:
    seen = GoldenModel.visible(self, a, positions - 1, end)
    return seen | ((positions[:, None] == 0) & (np.arange(end) == 0))


@method("a position sees the next one", "visible")
def _(self: GoldenModel, a: Attention, positions: Any, end: int) -> Any:
    return GoldenModel.visible(self, a, positions + 1, end)


@method("the first position invisible", "visible")
def _(self: GoldenModel, a: Attention, positions: Any, end: int) -> Any:
    return GoldenModel.visible(self, a, positions, end) & ((positions[:, None] == 0) | (np.arange(end) > 0))


@method("keys and values exchanged", "attend")
def _(self: GoldenModel, call: Any, a: Attention, q: Any, keys: Any, values: Any) -> Any:
    return GoldenModel.attend(self, call, a, q, values, keys)


@method("heads interleaved", "split")
def _(self: GoldenModel, x: Any, heads: int) -> Any:
    return np.ascontiguousarray(x.reshape(len(x), -1, heads).swapaxes(1, 2))


@method("attention heads joined in reverse", "join")
def _(self: GoldenModel, x: Any) -> Any:
    return x[:, ::-1].reshape(len(x), -1)


@method("softmax in powers of two", "attend")
def _(self: GoldenModel, call: Any, a: Attention, q: Any, keys: Any, values: Any) -> Any:
    return GoldenModel.attend(self, call, a, f.snap(q * np.float32(math.log(2))), keys, values)


# --- residual stream

method("residual not added", "residual")(lambda self, x, y, factor: y)
method("residual subtracted", "residual")(lambda self, x, y, factor: f.snap(x - y))
method("residual of twice the input", "residual")(lambda self, x, y, factor: f.snap(x + x + y))


@method("attention skipped", "attention")
def _(self: GoldenModel, call: Any, a: Attention, n: Any) -> Any:
    GoldenModel.attention(self, call, a, n)
    return np.zeros_like(n)


@method("attention output shifted by one element", "project")
def _(self: GoldenModel, name: str, x: Any) -> Any:
    return GoldenModel.project(self, name, np.roll(x, 1, axis=1) if name.endswith("attn.o.weight") else x)


@method("last layer skipped", "layer")
def _(self: GoldenModel, call: Any, layer: Layer, x: Any) -> Any:
    y = GoldenModel.layer(self, call, layer, x)
    return y if call.layer == 0 else x


@method("layers share the first one's weights", "stored")
def _(self: GoldenModel, name: str) -> Any:
    return GoldenModel.stored(self, name.replace("layers.1.", "layers.0."))


@method("embedding times sqrt(H)", "embed")
def _(self: GoldenModel, call: Any, ids: Any) -> Any:
    return f.snap(GoldenModel.embed(self, call, ids) * np.float32(math.sqrt(self.config.hidden_size)))


@method("ids off by one", "embed")
def _(self: GoldenModel, call: Any, ids: Any) -> Any:
    return GoldenModel.embed(self, call, (ids + 1) % self.config.vocab_size)


# --- router and experts


@method("no renormalisation", "expert_weights")
def _(self: GoldenModel, r: Router, z: Any, ids: Any) -> Any:
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return f.snap(np.take_along_axis(p / p.sum(axis=1, keepdims=True), ids.astype(np.int64), axis=1))


method("all experts weigh the same", "expert_weights")(
    lambda self, r, z, ids: np.full(ids.shape, 1 / ids.shape[1], np.float32)
)
method("expert weights reversed", "expert_weights")(
    lambda self, r, z, ids: GoldenModel.expert_weights(self, r, z, ids)[:, ::-1].copy()
)
method("sigmoid router", "expert_weights")(
    lambda self, r, z, ids: f.snap(f.sigmoid(np.take_along_axis(z, ids.astype(np.int64), axis=1)))
)
method("expert weights left out", "expert_weights")(lambda self, r, z, ids: np.ones(ids.shape, np.float32))
method("the smallest logits chosen", "select")(
    lambda self, r, z: np.argsort(z, axis=1, kind="stable")[:, : r.top_k].astype(np.int32)
)
method("the first experts always", "select")(
    lambda self, r, z: np.broadcast_to(np.arange(r.top_k, dtype=np.int32), (len(z), r.top_k))
)
method("the next expert's number", "select")(
    lambda self, r, z: (GoldenModel.select(self, r, z) + 1) % np.int32(r.n_experts)
)
method("experts in rising order, weights not", "expert_blocks")(
    lambda self, call, ffn, ids: GoldenModel.expert_blocks(self, call, ffn, np.sort(ids, axis=1))
)
method("ties to the higher index", "select")(
    lambda self, r, z: r.n_experts - 1 - np.argsort(-z[:, ::-1], axis=1, kind="stable")[:, : r.top_k].astype(np.int32)
)
method("the largest magnitude chosen", "select")(lambda self, r, z: GoldenModel.select(self, r, np.abs(z)))
method("router logits halved", "router_logits")(
    lambda self, r, name, n: f.snap(GoldenModel.router_logits(self, r, name, n) / np.float32(2))
)
config("one expert fewer", top_k(-1))
config("one expert more", top_k(1))

# --- head

config("untied head tied", lambda c: replace(c, tied_head=True))
method("logits of the next id", "head")(lambda self, call, n: np.roll(GoldenModel.head(self, call, n), 1, axis=1))
method("logits capped at 30", "head")(
    lambda self, call, n: np.float32(30) * np.tanh(GoldenModel.head(self, call, n) / np.float32(30))
)
