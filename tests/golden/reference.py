# SPDX-License-Identifier: Apache-2.0
"""An ordinary float64 simulation of the forward step, straight from the formulas, sharing no code with the golden model.

It keeps none of the contract's roundings but that of quantised vectors (reference_products).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.axes import Attention, Convolution, Ffn, LatentAttention, Layer, Norm, QkNorm, Rope, Router

from .reference_products import F64, Products, Traced
from .reference_router import by_hierarchy, choose

Tokens = npt.NDArray[np.int64]


def logistic(x: F64) -> F64:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


erf = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {
    "silu": lambda x: x * logistic(x),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
}


@dataclass
class Simulation(Products):
    """A model in float64; experts: for each layer those chosen, [T, top_k]."""

    experts: list[npt.NDArray[np.int64]] = field(default_factory=list)

    def logits(self, ids: list[int]) -> F64:
        """Float64 [T, V] for tokens from position 0 on."""
        c, T = self.config, len(ids)
        x = self.matrix("embed.weight")[ids] * c.embedding_scale
        name: tuple[int | None, str] = (None, "embed")
        for index, layer in enumerate(c.layers):
            x = self.layer(index, layer, x, self.traced(*name, n=T))
            name = (index, "ffn_residual")
        head = "embed.weight" if c.tied_head else "head.weight"
        z = self.product(head, self.norm(x, "final_norm", c.final_norm), self.traced(None, "final_norm", n=T))
        return np.asarray((z + self.vector("head.bias") if c.head_bias else z) * c.logits_scale)

    def layer(self, index: int, layer: Layer, x: F64, traced: Traced) -> F64:
        prefix, T = f"layers.{index}.", len(x)
        n = x
        if layer.attn_norm is not None:
            n, traced = self.norm(x, prefix + "attn_norm", layer.attn_norm), self.traced(index, "attn_norm", n=T)
        mix = {Attention: self.attention, LatentAttention: self.latent_attention, Convolution: self.convolution}
        y = mix[type(layer.mixer)](index, layer.mixer, n, traced)  # type: ignore[operator]  # each its own mixer
        if layer.attn_post_norm is not None:
            y = self.norm(y, prefix + "attn_post_norm", layer.attn_post_norm)
        x = x + layer.residual * y
        n, traced = x, self.traced(index, "attn_residual", n=T)
        if layer.ffn_norm is not None:
            n, traced = self.norm(x, prefix + "ffn_norm", layer.ffn_norm), self.traced(index, "ffn_norm", n=T)
        y = self.ffn(index, layer.ffn, n, traced)
        if layer.ffn_post_norm is not None:
            y = self.norm(y, prefix + "ffn_post_norm", layer.ffn_post_norm)
        return x + layer.residual * y

    def norm(self, x: F64, name: str, norm: Norm) -> F64:
        if norm.kind == "layer":
            x = x - x.mean(axis=-1, keepdims=True)
        y = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + norm.eps)
        if norm.weight:
            y = y * self.vector(name + ".weight")
        return np.asarray(y + self.vector(name + ".bias") if norm.bias else y)

    def linear(self, name: str, x: F64, traced: Traced, bias: bool) -> F64:
        y = self.product(name + ".weight", x, traced)
        return y + self.vector(name + ".bias") if bias else y

    # --- mixers

    def attention(self, index: int, a: Attention, n: F64, traced: Traced) -> F64:
        prefix, T = f"layers.{index}.attn.", len(n)
        if a.router is not None:
            return self.mixture_of_attention(index, a, a.router, n, traced)
        q, k, v = (self.linear(prefix + m, n, traced, a.qkv_bias) for m in "qkv")
        if a.qk_norm is not None and a.qk_norm.over == "vector":
            q, k = self.qk_norm(prefix, a.qk_norm, q, k)
        limit = math.inf if a.clip is None else a.clip
        q, k, v = (np.clip(x, -limit, limit).reshape(T, -1, a.head_dim) for x in (q, k, v))
        o = self.heads(index, a, q, k, v)
        if a.gate:
            o = o * logistic(self.product(prefix + "gate.weight", n, traced))
        return self.linear(prefix + "o", o, self.traced(index, "attn_gate" if a.gate else "attn", n=T), a.o_bias)

    def mixture_of_attention(self, index: int, a: Attention, router: Router, n: F64, traced: Traced) -> F64:
        prefix, T, width = f"layers.{index}.attn.", len(n), a.n_kv_heads * a.head_dim
        chosen, weight = self.route(prefix + "router", router, n)
        q = np.empty((T, router.top_k, width))
        for expert, tokens, slots in self.by_expert(chosen):
            q[tokens, slots] = self.product(
                f"{prefix}experts.{expert}.q.weight", n[tokens], None if traced is None else traced[tokens]
            )
        k, v = (self.product(f"{prefix}{m}.weight", n, traced).reshape(T, -1, a.head_dim) for m in "kv")
        o = self.heads(index, a, q.reshape(T, -1, a.head_dim), k, v).reshape(T, router.top_k, width)
        theirs = self.traced(index, "attn", n=T)
        y = np.zeros_like(n)
        for expert, tokens, slots in self.by_expert(chosen):
            part = None if theirs is None else theirs.reshape(o.shape)[tokens, slots]
            out = self.product(f"{prefix}experts.{expert}.o.weight", o[tokens, slots], part)
            np.add.at(y, tokens, weight[tokens, slots, None] * out)
        return y + self.vector(prefix + "o.bias") if a.o_bias else y

    def heads(self, index: int, a: Attention, q: F64, k: F64, v: F64) -> F64:
        """From the split into heads to the output [T, heads * d]."""
        prefix, T = f"layers.{index}.attn.", len(q)
        positions = np.arange(T)
        if a.qk_norm is not None and a.qk_norm.over == "head":
            q, k = self.qk_norm(prefix, a.qk_norm, q, k)
        if a.rope is not None:
            q, k = self.rope(a.rope, q), self.rope(a.rope, k)
        if a.qk_norm is not None and a.qk_norm.over == "head_after":
            q, k = self.qk_norm(prefix, a.qk_norm, q, k)
        q = q * a.scale
        if a.temperature is not None:
            grown = 1 + a.temperature.scale * np.log1p((positions + 1) // a.temperature.interval)
            q = q * grown[:, None, None]
        values = self.traced(index, "v", n=T)
        if values is not None and a.clip is not None:
            values = np.clip(values, np.float32(-a.clip), np.float32(a.clip))
        k, v = self.cached(k, self.traced(index, "k_rope", n=T)), self.cached(v, values)
        seen = positions[:, None] >= positions
        if a.window is not None:
            seen &= positions[:, None] - positions < a.window
        if a.chunk is not None:
            seen &= positions[:, None] // a.chunk == positions // a.chunk
        groups = a.n_heads // a.n_kv_heads
        k, v = (np.tile(x, (1, groups, 1)) if a.kv_map == "tile" else np.repeat(x, groups, axis=1) for x in (k, v))
        return self.softmax_attention(q, k, v, seen, self.vector(prefix + "sinks") if a.sinks else None)

    def softmax_attention(self, q: F64, k: F64, v: F64, seen: npt.NDArray[np.bool_], sinks: F64 | None) -> F64:
        z = np.where(seen, np.einsum("thd,shd->hts", q, k), -np.inf)
        if sinks is not None:
            z = np.concatenate([z, np.broadcast_to(sinks[:, None, None], (*z.shape[:2], 1))], axis=-1)
        p = np.exp(z - z.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return np.asarray(np.einsum("hts,shd->thd", p[..., : len(k)], v)).reshape(len(q), -1)

    def qk_norm(self, prefix: str, qk: QkNorm, q: F64, k: F64) -> tuple[F64, F64]:
        return self.norm(q, prefix + "q_norm", qk.norm), self.norm(k, prefix + "k_norm", qk.norm)

    def rope(self, rope: Rope, x: F64) -> F64:
        turn = rope.factor * np.exp(1j * np.arange(len(x))[:, None, None] * np.array(rope.inv_freq))
        n = rope.rotary_dim
        first, second = (
            (slice(0, n // 2), slice(n // 2, n)) if rope.pairing == "half" else (slice(0, n, 2), slice(1, n, 2))
        )
        turned = (x[..., first] + 1j * x[..., second]) * turn
        out = x.copy()
        out[..., first], out[..., second] = turned.real, turned.imag
        return out

    def latent_attention(self, index: int, a: LatentAttention, n: F64, traced: Traced) -> F64:
        prefix, T = f"layers.{index}.attn.", len(n)
        c, c_traced = n, traced
        if a.q_rank is not None:
            c = self.norm(self.linear(prefix + "q_a", n, traced, a.bias), prefix + "q_a_norm", a.norm)
            c_traced = self.traced(index, "q_a", n=T)
        q = self.product(prefix + "q.weight", c, c_traced).reshape(T, a.n_heads, -1)
        q_traced = self.traced(index, "q", n=T)
        nope_traced = None if q_traced is None else q_traced.reshape(q.shape)[..., : a.nope_dim]
        down = self.linear(prefix + "kv_a", n, traced, a.bias)
        latent = self.norm(down[:, : a.kv_rank], prefix + "kv_a_norm", a.norm)
        key = np.concatenate([latent[:, None], self.rope(a.rope, down[:, None, a.kv_rank :])], axis=-1)
        key = self.cached(key, self.traced(index, "k_rope", n=T))
        absorbed = self.by_head(prefix + "k_up.weight", q[..., : a.nope_dim], nope_traced)
        query = a.scale * np.concatenate([absorbed, self.rope(a.rope, q[..., a.nope_dim :])], axis=-1)
        behind = np.arange(T)[:, None] - np.arange(T)
        seen = (behind >= 0) & (behind < (a.window or T))
        keys = np.repeat(key, a.n_heads, axis=1)
        o = self.softmax_attention(query, keys, keys[..., : a.kv_rank], seen, None).reshape(T, a.n_heads, -1)
        o_traced = self.traced(index, "attn", n=T)
        u = self.by_head(prefix + "v_up.weight", o, None if o_traced is None else o_traced.reshape(o.shape))
        return self.linear(prefix + "o", u.reshape(T, -1), self.traced(index, "v_up", n=T), a.bias)

    def by_head(self, name: str, x: F64, traced: Traced) -> F64:
        """Each head of x [T, heads, n] times its own rows of a matrix."""
        heads, rows = x.shape[1], self.weights(name).rows // x.shape[1]
        parts = [
            self.product(name, x[:, h], None if traced is None else traced[:, h], rows=slice(h * rows, (h + 1) * rows))
            for h in range(heads)
        ]
        return np.stack(parts, axis=1)

    def convolution(self, index: int, c: Convolution, n: F64, traced: Traced) -> F64:
        prefix, T = f"layers.{index}.conv.", len(n)
        before, after, u = np.split(self.linear(prefix + "in", n, traced, c.bias), 3, axis=1)
        taps = self.matrix(prefix + "taps.weight")
        mixed = np.stack([np.convolve(g, w[::-1])[:T] for g, w in zip((before * u).T, taps, strict=True)], axis=1)
        if c.bias:
            mixed = mixed + self.vector(prefix + "taps.bias")
        return self.linear(prefix + "out", after * mixed, self.traced(index, "conv", n=T), c.bias)

    # --- feed-forward

    def ffn(self, index: int, f: Ffn, n: F64, traced: Traced) -> F64:
        prefix, everyone = f"layers.{index}.", np.arange(len(n))
        if f.router is None:
            self.experts.append(np.empty((len(n), 0), np.int64))
            return self.block(prefix + "ffn", f, n, traced, index, 0, everyone)
        chosen, weight = self.route(prefix + "router", f.router, n)
        self.experts.append(chosen)
        y = np.zeros_like(n)
        for slot in range(f.router.top_k):
            for expert in np.unique(chosen[:, slot][chosen[:, slot] >= 0]):
                t = np.flatnonzero(chosen[:, slot] == expert)
                w, x, theirs = weight[t, slot, None], n[t], None if traced is None else traced[t]
                if f.router.side == "input":
                    if theirs is not None:
                        theirs = theirs * self.traced(index, "expert_weights", tokens=t)[:, slot, None]  # type: ignore[index]  # there is a trace
                    w, x = np.ones_like(w), w * x
                y[t] += w * self.block(f"{prefix}experts.{expert}", f, x, theirs, index, slot, t)
        if f.shared is not None:
            w = logistic(n @ self.matrix(prefix + "shared_gate.weight").T) if f.shared.gated else np.ones((len(n), 1))
            if f.shared.mix:
                mix = np.exp(n @ self.matrix(prefix + "shared_mix.weight").T + self.vector(prefix + "shared_mix.bias"))
                first, w = np.split(mix / mix.sum(axis=1, keepdims=True), 2, axis=1)
                y *= first
            y += w * self.block(prefix + "shared", f, n, traced, index, f.router.top_k, everyone)
        return y + self.vector(prefix + "ffn.bias") if f.output_bias else y

    def block(self, name: str, f: Ffn, x: F64, traced: Traced, index: int, slot: int, tokens: Tokens) -> F64:
        u = self.linear(name + ".up", x, traced, f.bias)
        g = self.linear(name + ".gate", x, traced, f.bias) if f.gated else u
        if f.clamp is not None:
            g, u = np.minimum(g, f.clamp.limit), np.clip(u, -f.clamp.limit, f.clamp.limit)
            h = (u + 1) * g * logistic(f.clamp.alpha * g)
        else:
            h = ACTIVATIONS[f.activation](g) * (u if f.gated else 1)
        return self.linear(name + ".down", h, self.traced(index, "act", slot, tokens), f.bias)

    def route(self, name: str, router: Router, n: F64) -> tuple[npt.NDArray[np.int64], F64]:
        if router.hidden == "tanh":
            n = np.tanh(n @ self.matrix(name + ".hidden.weight").T)
        z = n @ self.matrix(name + ".weight").T
        if router.bias:
            z = z + self.vector(name + ".bias")
        if router.hierarchy is not None:
            primary = n @ self.matrix(name + ".primary.weight").T
            picks = [
                by_hierarchy(router, router.hierarchy, *rows) for rows in zip(primary.tolist(), z.tolist(), strict=True)
            ]
            return np.array([ids for ids, _ in picks]), np.array([w for _, w in picks])
        correction = self.vector(name + ".correction").tolist() if router.correction else None
        picks = [choose(router, row.tolist(), correction) for row in z]
        return np.array([ids for ids, _ in picks]), np.array([w for _, w in picks])

    def by_expert(self, chosen: npt.NDArray[np.int64]) -> list[tuple[int, Any, Any]]:
        return [(int(e), *np.nonzero(chosen == e)) for e in np.unique(chosen)]
