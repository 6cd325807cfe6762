# SPDX-License-Identifier: Apache-2.0
"""Latent attention with absorbed up-projections: docs/NUMERICS.md section 7.5."""

from __future__ import annotations

import numpy as np

from colibri.axes import Attention, LatentAttention

from .attention import AttentionOperators
from .fma import F32Array
from .operators import Call


class LatentAttentionOperators(AttentionOperators):
    """The queries meet the latent itself: it is key and, without its rotary part, value of one KV head."""

    def latent_attention(self, call: Call, a: LatentAttention, n: F32Array) -> F32Array:
        """The whole mixer: n [T, H] to y [T, H]."""
        attn = call.name("attn")
        q = self.emit(call, "q", self.project(f"{attn}.q.weight", self.latent_query(call, a, n)))
        l = self.emit(call, "kv_a", self.linear(f"{attn}.kv_a", n, bias=a.bias), ranged=True)  # noqa: E741  # its name in the contract
        latent = self.norm(l[:, : a.kv_rank], f"{attn}.kv_a_norm", a.norm)
        heads = self.split(q, a.n_heads)
        turned, rotary = self.rope(call, a.rope, heads[..., a.nope_dim :], l[:, None, a.kv_rank :])
        self.check(call, "q", self.join(np.concatenate([heads[..., : a.nope_dim], turned], axis=-1)))
        query = self.scale_query(
            a.scale, np.concatenate([self.absorb(call, heads[..., : a.nope_dim]), turned], axis=-1)
        )
        key = np.concatenate([latent[:, None], rotary], axis=-1)
        self.emit(call, "q_rope", self.join(query), ranged=True)
        self.emit(call, "k_rope", self.join(key), ranged=True, limit_bits=self._cache.limit_bits)
        assert call.layer is not None
        self._cache.append(call.layer, int(call.positions[0]), key)
        (keys,) = self._cache.read(call.layer, int(call.positions[-1]) + 1)
        o = self.attend(call, self.over_latents(a), query, keys, keys[..., : a.kv_rank])
        self.emit(call, "attn", self.join(o), ranged=True)
        u = self.emit(call, "v_up", self.join(self.project_heads(f"{attn}.v_up.weight", o)), ranged=True)
        return self.linear(f"{attn}.o", u, bias=a.bias)

    def latent_query(self, call: Call, a: LatentAttention, n: F32Array) -> F32Array:
        """What the query projection reads: n [T, H], or its normed latent [T, q_rank]."""
        if a.q_rank is None:
            return n
        c = self.linear(call.name("attn.q_a"), n, bias=a.bias)
        self.check(call, "q_a", c)
        return self.emit(call, "q_a", self.norm(c, call.name("attn.q_a_norm"), a.norm), ranged=True)

    def absorb(self, call: Call, nope: F32Array) -> F32Array:
        """The queries' nope parts [T, heads, nope_dim] in the space of the latent: [T, heads, kv_rank]."""
        return self.project_heads(call.name("attn.k_up.weight"), nope)

    def over_latents(self, a: LatentAttention) -> Attention:
        """The same as ordinary attention over one KV head."""
        return Attention(a.n_heads, 1, a.kv_rank + a.rope_dim, a.scale, a.rope, window=a.window)
