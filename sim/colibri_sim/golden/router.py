# SPDX-License-Identifier: Apache-2.0
"""Which experts run, and with what weight: docs/NUMERICS.md section 7.8, 1 to 8, and the weighted sum of 9."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from colibri.axes import Groups, Hierarchy, Renormalise, Router

from . import functions as f
from . import vectors as v
from .fma import F32Array, fma
from .operators import Call, I32Array, Operators
from .trace import TraceName

_ZERO = np.float32(0.0)


class RouterOperators(Operators):
    """Logits z, scores s and selection values c are [T, n_experts]; ids and weights [T, top_k], -1 and 0 where none is chosen."""

    def route(
        self, call: Call, router: Router, name: str, n: F32Array, *, trace: str = ""
    ) -> tuple[I32Array, F32Array]:
        """The chosen experts and their weights, [T, k] each; `name` that of the router's tensors in the layer."""
        z = self.emit(call, f"{trace}router", self.router_logits(router, call.name(name), n))
        if router.method == "sparsemixer":
            ids, weights = self.sparsemixer(router, z)
        elif router.hierarchy is not None:
            primary = self.float_product(call.name(f"{name}.primary.weight"), n)
            ids, weights = self.by_hierarchy(router, router.hierarchy, primary, z)
        else:
            s = self.scores(router, z)
            c = self.correct(call.name(f"{name}.correction"), s) if router.correction else s
            ids = self.select(router, c if router.groups is None else self.limit_to_groups(router.groups, c))
            if router.top_p is not None:
                ids = self.shortest_prefix(np.float32(router.top_p), s, ids)
            weights = self.expert_weights(router, s, ids)
        if router.capacity is not None:
            weights = self.limit_to_capacity(router.capacity, ids, weights)
        self.show(call, TraceName(call.layer, f"{trace}expert_ids", None), ids)
        return ids, self.emit(call, f"{trace}expert_weights", weights)

    def router_logits(self, router: Router, name: str, n: F32Array) -> F32Array:
        """Float dot products always: z."""
        if router.hidden == "tanh":
            n = f.tanh(self.float_product(f"{name}.hidden.weight", n))
        z = self.float_product(f"{name}.weight", n)
        return self.add_bias(f"{name}.bias", z) if router.bias else z

    def scores(self, router: Router, z: F32Array) -> F32Array:
        """s of z."""
        match router.score:
            case "raw":
                return z
            case "sigmoid":
                return f.sigmoid(z)
            case "softmax":
                return v.softmax(z)

    def correct(self, name: str, s: F32Array) -> F32Array:
        """``snap(s + correction)``."""
        return self.add_bias(name, s)

    def limit_to_groups(self, groups: Groups, c: F32Array) -> F32Array:
        """c where an expert's group is among the best, else what `fill` says (-inf: it cannot be chosen)."""
        grouped = c.reshape(len(c), groups.n_groups, -1)
        best = np.argsort(-self.group_values(groups, grouped), axis=-1, kind="stable")[:, : groups.top_groups]
        kept = np.zeros(grouped.shape, dtype=bool)
        np.put_along_axis(kept, best[:, :, None], True, axis=1)
        return np.where(kept, grouped, _ZERO if groups.fill == "zero" else np.float32(-np.inf)).reshape(c.shape)

    def group_values(self, groups: Groups, c: F32Array) -> F32Array:
        """The value of each group: c [T, n_groups, experts] to [T, n_groups]."""
        rising = np.sort(c, axis=-1)
        return rising[..., -1] if groups.score == "max" else f.snap(rising[..., -1] + rising[..., -2])

    def select(self, router: Router, c: F32Array) -> I32Array:
        """The k largest values, descending, ties to the lower index."""
        return np.argsort(-c, axis=-1, kind="stable")[:, : router.top_k].astype(np.int32)

    def shortest_prefix(self, p: np.float32, s: F32Array, ids: I32Array) -> I32Array:
        """The first ids whose scores sum to p or more, all where none do; -1 for the others."""
        sums = np.zeros(len(s), dtype=np.float32)
        kept = np.full(ids.shape, -1, dtype=np.int32)
        is_short = np.ones(len(s), dtype=bool)
        for j in range(ids.shape[1]):
            kept[is_short, j] = ids[is_short, j]
            sums = sums + np.take_along_axis(s, ids[:, j, None].astype(np.int64), axis=-1)[:, 0]
            is_short &= sums < p
        return kept

    def expert_weights(self, router: Router, s: F32Array, ids: I32Array) -> F32Array:
        """The weights of the chosen experts, from their scores."""
        scores = np.take_along_axis(s, np.maximum(ids, 0).astype(np.int64), axis=-1)
        w = self.chosen_weights(router, np.where(ids < 0, _ZERO, scores))
        if router.renormalise is not None:
            w = self.renormalise(router.renormalise, w)
        return w if router.scale == 1.0 else f.snap(w * np.float32(router.scale))

    def chosen_weights(self, router: Router, s: F32Array) -> F32Array:
        """w of the chosen experts' s, [T, k] both."""
        match router.weights:
            case "score":
                return s
            case "sigmoid":
                return f.sigmoid(s)
            case "one":
                return np.ones_like(s)
            case "softmax":
                return v.softmax(s)

    def renormalise(self, r: Renormalise, w: F32Array) -> F32Array:
        """``w / max(norm + eps, floor)``."""
        if r.norm == "sum":
            d = v.sum_rising(w)
        else:
            d = np.zeros(len(w), dtype=np.float32)
            for j in range(w.shape[1]):
                d = fma(w[:, j], w[:, j], d)
            d = np.sqrt(d)
        if r.eps:
            d = d + np.float32(r.eps)
        return f.snap(w / np.maximum(d, np.float32(r.floor))[:, None])

    def limit_to_capacity(self, capacity: int, ids: I32Array, weights: F32Array) -> F32Array:
        """+0.0 for a token whose expert as many tokens of the source before it have chosen."""
        before = np.array([np.count_nonzero(ids[:t, 0] == e) for t, e in enumerate(ids[:, 0])])
        return np.where(before[:, None] < capacity, weights, _ZERO)

    def by_hierarchy(self, router: Router, h: Hierarchy, primary: F32Array, z: F32Array) -> tuple[I32Array, F32Array]:
        """Two gates, each a softmax over the best: primary [T, n_groups], z the logits of the groups' own gates."""
        size, k = router.n_experts // h.n_groups, router.top_k // h.top_groups
        groups, of_groups = self.best(primary, h.top_groups)
        members = np.take_along_axis(z.reshape(len(z), h.n_groups, size), groups[:, :, None].astype(np.int64), axis=1)
        experts, of_experts = self.best(members, k)
        ids = (groups[:, :, None] * size + experts).reshape(len(z), -1)
        return ids, f.snap(of_groups[:, :, None] * of_experts).reshape(ids.shape)

    def best(self, z: F32Array, k: int) -> tuple[I32Array, F32Array]:
        """Indices of the k largest along the last axis, ties to the lower, and the softmax over them."""
        ids = np.argsort(-z, axis=-1, kind="stable")[..., :k].astype(np.int32)
        return ids, v.softmax(np.take_along_axis(z, ids.astype(np.int64), axis=-1))

    def sparsemixer(self, router: Router, z: F32Array) -> tuple[I32Array, F32Array]:
        """PhiMoE's picks: each the largest left, weighted by a softmax over those left that are not far below it."""
        left = np.ones(z.shape, dtype=bool)
        ids = np.empty((len(z), router.top_k), dtype=np.int32)
        weights = np.empty(ids.shape, dtype=np.float32)
        for j in range(router.top_k):
            open_z = np.where(left, z, np.float32(-np.inf))
            m = open_z.max(axis=-1, keepdims=True)
            ids[:, j] = open_z.argmax(axis=-1)
            near = left & ~(m - z > np.maximum(np.abs(z), m) * np.float32(2 * router.jitter))
            e = np.where(near, f.exp_clamped(f.snap(np.where(near, z, m) - m)), _ZERO)
            weights[:, j] = f.snap(np.float32(1) / v.sum_rising(e))
            np.put_along_axis(left, ids[:, j, None].astype(np.int64), False, axis=-1)
        return ids, weights

    # --- what the chosen experts do

    def each_expert(self, ids: I32Array, x: F32Array, block: Callable[[int, F32Array], F32Array]) -> F32Array:
        """block(expert, vectors [N, n]) [N, m] for the vectors of each expert: x [T, k, n] to [T, k, m]."""
        parts = {int(e): np.nonzero(ids == e) for e in np.unique(ids)}
        outputs = {e: block(e, x[at]) for e, at in parts.items()}
        y = np.empty((*ids.shape, next(iter(outputs.values())).shape[-1]), dtype=np.float32)
        for e, at in parts.items():
            y[at] = outputs[e]
        return y

    def combine(self, weights: F32Array, outputs: F32Array) -> F32Array:
        """``y = fma(w, o, y)`` slot by slot, then snap: weights [T, slots], outputs [T, slots, H]."""
        return v.weighted_sum(weights, outputs)
