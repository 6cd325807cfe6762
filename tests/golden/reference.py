# SPDX-License-Identifier: Apache-2.0
"""An ordinary float64 simulation of the forward step, straight from the formulas, sharing no code with the golden model.

It keeps none of the contract's roundings but one: where a product quantises its vector, so does this, because that
rounding is a decision and not an error. An element that lies within TIE of half-way between two integers may fall to
either side; there the simulation takes the golden model's side, and counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.model import Attention, Ffn, ModelConfig
from colibri.quantise import Stored
from colibri_sim.golden import TraceName, TraceRecorder
from colibri_sim.golden.cache import KvFormat

F64 = npt.NDArray[np.float64]
TIE = 2e-3
"""In steps of the quantised vector: float32 and float64 disagree by about 127 * 1e-6 of one."""


@dataclass
class Simulation:
    """A model in float64.

    weights   the stored tensors; the simulation uses their exact values
    integer   False: never quantise a vector (dequantised weights, float activations)
    kv        format of the KV cache
    golden    a trace of the golden model with all values, for the side of ties; None: round to even
    flips     elements that took the golden model's side against float64's
    rounded   elements quantised
    """

    config: ModelConfig
    weights: Callable[[str], Stored]
    integer: bool = True
    kv: KvFormat = "f32"
    golden: TraceRecorder | None = None
    flips: int = 0
    rounded: int = 0
    experts: list[npt.NDArray[np.int64]] = field(default_factory=list)

    def logits(self, ids: list[int]) -> F64:
        """Float64 [T, V] for tokens from position 0 on."""
        c = self.config
        x = self.matrix("embed.weight")[ids]
        for index, layer in enumerate(c.layers):
            prefix = f"layers.{index}."
            n = self.norm(x, prefix + "attn_norm.weight")
            o = self.attention(index, layer.attention, n)
            x = x + self.product(prefix + "attn.o.weight", o, TraceName(index, "attn", None))
            n = self.norm(x, prefix + "ffn_norm.weight")
            x = x + self.ffn(index, layer.ffn, n)
        n = self.norm(x, "final_norm.weight")
        head = "embed.weight" if c.tied_head else "head.weight"
        return self.product(head, n, TraceName(None, "final_norm", None))

    def norm(self, x: F64, name: str) -> F64:
        root = np.sqrt((x**2).mean(axis=-1, keepdims=True) + self.config.norm_eps)
        return np.asarray(x / root * self.matrix(name)[0])

    def attention(self, index: int, a: Attention, n: F64) -> F64:
        T = len(n)
        source = TraceName(index, "attn_norm", None)
        q, k, v = (self.product(f"layers.{index}.attn.{m}.weight", n, source).reshape(T, -1, a.head_dim) for m in "qkv")
        q, k = self.rope(a, q) * a.scale, self.rope(a, k)
        if self.kv != "f32":
            k, v = self.cached(k, TraceName(index, "k_rope", None)), self.cached(v, TraceName(index, "v", None))
        groups = a.n_heads // a.n_kv_heads
        k, v = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
        z = np.einsum("thd,shd->hts", q, k)
        back = np.arange(T)[:, None] - np.arange(T)
        z[:, (back < 0) | (back >= (a.window or T))] = -np.inf
        p = np.exp(z - z.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return np.asarray(np.einsum("hts,shd->thd", p, v)).reshape(T, -1)

    def rope(self, a: Attention, x: F64) -> F64:
        angle = np.arange(len(x))[:, None, None] * np.array(a.rope.inv_freq)
        half = a.rope.rotary_dim // 2
        if a.rope.pairing == "half":
            pair = x[..., :half] + 1j * x[..., half : 2 * half]
        else:
            pair = x[..., 0 : 2 * half : 2] + 1j * x[..., 1 : 2 * half : 2]
        turned = pair * np.exp(1j * angle)
        out = x.copy()
        if a.rope.pairing == "half":
            out[..., :half], out[..., half : 2 * half] = turned.real, turned.imag
        else:
            out[..., 0 : 2 * half : 2], out[..., 1 : 2 * half : 2] = turned.real, turned.imag
        return out

    def ffn(self, index: int, f: Ffn, n: F64) -> F64:
        prefix = f"layers.{index}."
        if f.router is None:
            return self.block(prefix + "ffn.", n, index, 0, np.arange(len(n)))
        z = n @ self.matrix(prefix + "router.weight").T
        chosen = np.array([sorted(range(z.shape[1]), key=lambda e: (-row[e], e))[: f.router.top_k] for row in z])
        self.experts.append(chosen)
        weight = np.exp(np.take_along_axis(z, chosen, axis=1))
        weight /= weight.sum(axis=1, keepdims=True)
        y = np.zeros_like(n)
        for slot in range(f.router.top_k):
            for expert in np.unique(chosen[:, slot]):
                t = np.flatnonzero(chosen[:, slot] == expert)
                y[t] += weight[t, slot, None] * self.block(f"{prefix}experts.{expert}.", n[t], index, slot, t)
        return y

    def block(self, prefix: str, n: F64, index: int, slot: int, tokens: npt.NDArray[Any]) -> F64:
        source = TraceName(index, "ffn_norm", None)
        g = self.product(prefix + "gate.weight", n, source, tokens)
        u = self.product(prefix + "up.weight", n, source, tokens)
        return self.product(prefix + "down.weight", g / (1 + np.exp(-g)) * u, TraceName(index, "act", slot), tokens)

    def matrix(self, name: str) -> F64:
        """The values of a stored tensor, exactly: data times scales in float64."""
        stored = self.weights(name)
        if stored.scales is None:
            return stored.values().astype(np.float64)
        scales = stored.scales.astype(np.float64)
        if stored.multipliers is not None:
            scales = scales * stored.multipliers
        return stored.data * np.repeat(scales, stored.format.group or stored.cols, axis=1)[:, : stored.cols]

    def product(self, name: str, x: F64, source: TraceName, tokens: npt.NDArray[Any] | None = None) -> F64:
        stored = self.weights(name)
        if self.integer and stored.format.is_integer:
            group = stored.format.group if stored.format.kind == "q8" else 0
            x = self.quantised(x, group or x.shape[1], self.traced(source, tokens, len(x)))
        return x @ self.matrix(name).T

    def cached(self, x: F64, source: TraceName) -> F64:
        traced = self.traced(source, None, len(x))
        if self.kv == "f16":
            return self.halves(x, None if traced is None else traced.reshape(x.shape))
        flat = x.reshape(-1, x.shape[-1])
        return self.quantised(flat, x.shape[-1], None if traced is None else traced.reshape(flat.shape)).reshape(
            x.shape
        )

    def halves(self, x: F64, traced: npt.NDArray[np.float32] | None) -> F64:
        """x as it reads back from binary16."""
        out = x.astype(np.float16).astype(np.float64)
        self.rounded += out.size
        if traced is not None:
            theirs = traced.astype(np.float16).astype(np.float64)
            step = np.spacing(np.abs(x).astype(np.float16)).astype(np.float64)
            tie = (out != theirs) & (np.abs(x - theirs) <= (0.5 + TIE) * step)
            self.flips += int(tie.sum())
            out = np.where(tie, theirs, out)
        return out

    def traced(self, source: TraceName, tokens: npt.NDArray[Any] | None, n: int) -> npt.NDArray[np.float32] | None:
        if self.golden is None:
            return None
        return np.stack([self.golden.values(int(t))[source] for t in (range(n) if tokens is None else tokens)])

    def quantised(self, x: F64, group: int, traced: npt.NDArray[np.float32] | None) -> F64:
        """x as it reads back from int8, a scale for each `group` elements of a row."""
        out = np.empty_like(x)
        for start in range(0, x.shape[1], group):
            part = slice(start, start + group)
            step = np.abs(x[:, part]).max(axis=1, keepdims=True) / 127
            steps = np.divide(x[:, part], step, out=np.zeros_like(x[:, part]), where=step > 0)
            q = np.rint(steps)
            if traced is not None:
                amax = np.abs(traced[:, part]).max(axis=1, keepdims=True)
                inverse = np.divide(np.float32(127), amax, out=np.zeros_like(amax), where=amax > 0)
                theirs = np.rint(traced[:, part] * inverse).astype(np.float64)
                tie = (q != theirs) & (np.abs(steps - theirs) <= 0.5 + TIE)
                self.flips += int(tie.sum())
                q = np.where(tie, theirs, q)
            self.rounded += q.size
            out[:, part] = q * step
        return out
