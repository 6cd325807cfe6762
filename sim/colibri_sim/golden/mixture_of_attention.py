# SPDX-License-Identifier: Apache-2.0
"""Mixture of attention: docs/NUMERICS.md section 7.4."""

from __future__ import annotations

from colibri.axes import Attention, Router

from .attention import AttentionOperators
from .fma import F32Array
from .operators import Call
from .router import RouterOperators


class MixtureOfAttentionOperators(AttentionOperators, RouterOperators):
    """The router's experts project queries and outputs; keys and values are shared."""

    def mixture_of_attention(self, call: Call, a: Attention, router: Router, n: F32Array) -> F32Array:
        """The whole mixer: n [T, H] to y [T, H]."""
        attn = call.name("attn")
        ids, weights = self.route(call, router, "attn.router", n, trace="attn_")
        slots = n[:, None].repeat(router.top_k, axis=1)
        q = self.each_expert(ids, slots, lambda e, x: self.project(f"{attn}.experts.{e}.q.weight", x))
        q = self.emit(call, "q", self.join(q))
        k = self.emit(call, "k", self.project(f"{attn}.k.weight", n))
        v = self.emit(call, "v", self.project(f"{attn}.v.weight", n))
        o = self.attend_in_context(
            call, a, self.split(q, a.n_heads), self.split(k, a.n_kv_heads), self.split(v, a.n_kv_heads)
        )
        outputs = self.each_expert(
            ids, self.split(o, router.top_k), lambda e, x: self.project(f"{attn}.experts.{e}.o.weight", x)
        )
        y = self.combine(weights, outputs)
        return self.add_bias(f"{attn}.o.bias", y) if a.o_bias else y
