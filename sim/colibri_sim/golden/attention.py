# SPDX-License-Identifier: Apache-2.0
"""Attention: docs/NUMERICS.md section 7.3."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colibri.axes import Attention, QkNorm, Rope
from colibri.tables import bias_table, temperature_table

from . import functions as f
from . import vectors as v
from .checks import check_snapped
from .fma import F32Array
from .operators import Call, I64Array, Operators


class AttentionOperators(Operators):
    """q is [T, heads, d], k and v [T, KV heads, d]; before the split into heads [T, heads * d]."""

    def attention(self, call: Call, a: Attention, n: F32Array) -> F32Array:
        """The whole mixer: n [T, H] to y [T, H]."""
        if a.over == "encoded":
            return self.cross_attention(call, a, n)
        attn = call.name("attn")
        q, k, v_ = (
            self.emit(call, x, self.linear(f"{attn}.{x}", n, bias=a.qkv_bias)) for x in ("q", "k", "v")
        )  # fmt: skip
        if a.qk_norm is not None and a.qk_norm.over == "vector":
            q, k = self.qk_norm(call, a.qk_norm, q, k)
        if a.clip is not None:
            q, k, v_ = (self.clip(a.clip, x) for x in (q, k, v_))
        o = self.attend_in_context(call, a, self.split(q, a.n_heads), *(self.split(x, a.n_kv_heads) for x in (k, v_)))
        if a.gate:
            o = self.emit(call, "attn_gate", self.gate_output(f"{attn}.gate.weight", o, n))
        return self.linear(f"{attn}.o", o, bias=a.o_bias)

    def attend_in_context(self, call: Call, a: Attention, q: F32Array, k: F32Array, v_: F32Array) -> F32Array:
        """Steps 2 to 9 from the split into heads on: the checked attention output [T, heads * d]."""
        self.check(call, "v", self.join(v_), limit_bits=self._cache.limit_bits)
        if a.qk_norm is not None and a.qk_norm.over == "head":
            q, k = self.qk_norm(call, a.qk_norm, q, k)
        if a.rope is not None:
            q, k = self.rope(call, a.rope, q, k)
        if a.qk_norm is not None and a.qk_norm.over == "head_after":
            q, k = self.qk_norm(call, a.qk_norm, q, k)
        q = self.scale_query(a.scale, q)
        if a.temperature is not None:
            table = temperature_table(a.temperature, self.config.max_seq)
            q = self.heat_query(table[(call.positions + 1) // a.temperature.interval], q)
        self.emit(call, "q_rope", self.join(q), ranged=True)
        self.emit(call, "k_rope", self.join(k), ranged=True, limit_bits=self._cache.limit_bits)
        assert call.layer is not None
        self._cache.append(call.layer, int(call.positions[0]), k, v_)
        keys, values = self._cache.read(call.layer, int(call.positions[-1]) + 1)
        return self.emit(call, "attn", self.join(self.attend(call, a, q, keys, values)), ranged=True)

    def cross_attention(self, call: Call, a: Attention, n: F32Array) -> F32Array:
        """Queries of the sequence meet keys and values of the encoder's output: n [T, H] to y [T, H]."""
        attn = call.name("attn")
        q = self.emit(call, "q", self.linear(f"{attn}.q", n, bias=a.qkv_bias))
        q = self.emit(call, "q_rope", self.scale_query(a.scale, q), ranged=True)
        assert call.layer is not None
        keys, values = self._cache.read(call.layer, self.source_length)
        o = self.join(self.attend(call, a, self.split(q, a.n_heads), keys, values))
        return self.linear(f"{attn}.o", self.emit(call, "attn", o, ranged=True), bias=a.o_bias)

    def cross_keys(self, call: Call, a: Attention, n: F32Array) -> None:
        """What cross-attention of the present layer reads, from the encoder's output n [T, H] into the cache."""
        attn = call.name("attn")
        k, v_ = (self.emit(call, x, self.linear(f"{attn}.{x}", n, bias=a.qkv_bias)) for x in ("k", "v"))
        self.check(call, "v", v_, limit_bits=self._cache.limit_bits)
        self.emit(call, "k_rope", k, ranged=True, limit_bits=self._cache.limit_bits)
        assert call.layer is not None
        self._cache.append(call.layer, 0, self.split(k, a.n_kv_heads), self.split(v_, a.n_kv_heads))

    def qk_norm(self, call: Call, qk: QkNorm, q: F32Array, k: F32Array) -> tuple[F32Array, F32Array]:
        """Norm q and k, over whatever their last axis is."""
        self.check(call, "q", self.join(q))
        self.check(call, "k", self.join(k))
        return self.norm(q, call.name("attn.q_norm"), qk.norm), self.norm(k, call.name("attn.k_norm"), qk.norm)

    def clip(self, limit: float, x: F32Array) -> F32Array:
        """``min(max(x, -limit), limit)``."""
        return np.clip(x, -np.float32(limit), np.float32(limit))

    def rope(self, call: Call, rope: Rope, q: F32Array, k: F32Array) -> tuple[F32Array, F32Array]:
        """Rotate q [T, heads, d] and k [T, KV heads, d] by their positions."""
        inv_freq = f.snap(np.asarray(rope.inv_freq, dtype=np.float32))
        sin, cos = f.sincos(call.positions.astype(np.float32)[:, None] * inv_freq)
        if rope.factor != 1.0:
            sin, cos = (f.snap(x * np.float32(rope.factor)) for x in (sin, cos))
        first, second = self.rotary_pairs(rope)
        turned = [self.rotate(x, first, second, sin[:, None], cos[:, None]) for x in (q, k)]
        return turned[0], turned[1]

    def rotary_pairs(self, rope: Rope) -> tuple[I64Array, I64Array]:
        """Indices of the first and the second element of each rotated pair."""
        n = rope.rotary_dim
        if rope.pairing == "half":
            return np.arange(0, n // 2), np.arange(n // 2, n)
        return np.arange(0, n, 2), np.arange(1, n, 2)

    def rotate(self, x: F32Array, first: I64Array, second: I64Array, sin: F32Array, cos: F32Array) -> F32Array:
        """Turn the pairs of x [T, heads, d]; sin and cos [T, 1, pairs]. Other elements stay."""
        out = x.copy()
        out[..., first], out[..., second] = v.rotate_pairs(x[..., first], x[..., second], sin, cos)
        return out

    def scale_query(self, scale: float, q: F32Array) -> F32Array:
        """``snap(q * scale)``."""
        return f.snap(q * np.float32(scale))

    def heat_query(self, heat: F32Array, q: F32Array) -> F32Array:
        """``snap(q * t)`` with each token's temperature, heat [T]."""
        return f.snap(q * heat[:, None, None])

    def attend(self, call: Call, a: Attention, q: F32Array, keys: F32Array, values: F32Array) -> F32Array:
        """Softmax attention: q [T, heads, d], keys and values [P, KV heads, d]; o [T, heads, d of the values]."""
        visible = self.visible(a, call.positions, keys.shape[0])
        sinks = self.vector(call.name("attn.sinks")) if a.sinks else None
        out = np.empty((*q.shape[:2], values.shape[2]), dtype=np.float32)
        for h in range(a.n_heads):
            kv = self.kv_head(a, h)
            z = f.snap(v.dot8_matrix(keys[:, kv], q[:, h]))
            if a.relative_bias is not None:
                z = self.bias_scores(a, h, call.positions, z)
            check_snapped("attention scores", z)
            p = v.softmax(z, visible, None if sinks is None else sinks[h : h + 1])
            check_snapped("attention weights", p)
            out[:, h] = v.weighted_sum(p, values[:, kv])
        return out

    def bias_scores(self, a: Attention, head: int, positions: I64Array, z: F32Array) -> F32Array:
        """``snap(z + b)`` with the head's bias of each distance: z [T, P]."""
        assert a.relative_bias is not None
        span = self.span(a.over)
        by_distance = bias_table(a.relative_bias, a.over, self.stored(f"relative_bias.{a.over}").values(), span)[head]
        # Where a token does not look, any distance does.
        at = np.minimum(np.arange(z.shape[1]) - positions[:, None] + span - 1, len(by_distance) - 1)
        return f.snap(z + by_distance[at])

    def visible(self, a: Attention, positions: I64Array, end: int) -> npt.NDArray[np.bool_]:
        """Which of the positions 0 .. end - 1 each token attends to: bool [T, end]."""
        there = np.arange(end)
        if a.over != "past":
            return np.ones((len(positions), end), dtype=bool)
        behind = positions[:, None] - there
        seen = behind >= 0
        if a.window is not None:
            seen &= behind < a.window
        if a.chunk is not None:
            seen &= there >= (positions - positions % a.chunk)[:, None]
        return seen

    def kv_head(self, a: Attention, head: int) -> int:
        """The KV head that a query head reads."""
        return head % a.n_kv_heads if a.kv_map == "tile" else head // (a.n_heads // a.n_kv_heads)

    def gate_output(self, gate: str, o: F32Array, n: F32Array) -> F32Array:
        """``snap(o * sigmoid(W_gate n))``: [T, heads * d]."""
        return f.snap(o * f.sigmoid(self.project(gate, n)))
