# SPDX-License-Identifier: Apache-2.0
"""Routing in Python floats, one token at a time, in the words of FAMILIES' canonical router and PhiMoE's own code."""

from __future__ import annotations

import math
from collections.abc import Sequence

from colibri.axes import Groups, Hierarchy, Renormalise, Router


def softmax(x: Sequence[float]) -> list[float]:
    largest = max(x)
    e = [math.exp(v - largest) for v in x]
    return [v / sum(e) for v in e]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def descending(values: Sequence[float]) -> list[int]:
    """Indices by value, the largest first; of equal ones the lower index."""
    return sorted(range(len(values)), key=lambda i: (-values[i], i))


def choose(router: Router, z: Sequence[float], correction: Sequence[float] | None) -> tuple[list[int], list[float]]:
    """The experts of one token, and their weights."""
    if router.method == "sparsemixer":
        return sparsemixer(z, router.jitter)
    s = {"raw": list, "softmax": softmax, "sigmoid": lambda x: [sigmoid(v) for v in x]}[router.score](z)
    c = s if correction is None else [a + b for a, b in zip(s, correction, strict=True)]
    if router.groups is not None:
        c = grouped(router.groups, c)
    ids = descending(c)[: router.top_k]
    if router.top_p is not None:
        n = next((n for n in range(1, router.top_k) if sum(s[e] for e in ids[:n]) >= router.top_p), router.top_k)
        ids = ids[:n]
    w = [s[e] for e in ids]
    match router.weights:
        case "softmax":
            w = softmax(w)
        case "sigmoid":
            w = [sigmoid(v) for v in w]
        case "one":
            w = [1.0] * len(w)
    if router.renormalise is not None:
        w = renormalised(router.renormalise, w)
    empty = router.top_k - len(ids)
    return [*ids, *[-1] * empty], [*(v * router.scale for v in w), *[0.0] * empty]


def by_hierarchy(
    router: Router, h: Hierarchy, primary: Sequence[float], secondary: Sequence[float]
) -> tuple[list[int], list[float]]:
    """Appendix B of Shazeer et al. 2017: both gates keep their best logits and take the softmax of those."""
    size = len(secondary) // h.n_groups
    ids, w = [], []
    for group, of_group in kept(primary, h.top_groups):
        for expert, of_expert in kept(secondary[group * size : (group + 1) * size], router.top_k // h.top_groups):
            ids.append(group * size + expert)
            w.append(of_group * of_expert)
    return ids, w


def kept(z: Sequence[float], k: int) -> list[tuple[int, float]]:
    """The k best with their softmax."""
    best = descending(z)[:k]
    return list(zip(best, softmax([z[i] for i in best]), strict=True))


def grouped(groups: Groups, c: Sequence[float]) -> list[float]:
    size = len(c) // groups.n_groups
    members = [c[g * size : (g + 1) * size] for g in range(groups.n_groups)]
    value = [max(m) if groups.score == "max" else sum(sorted(m)[-2:]) for m in members]
    kept = descending(value)[: groups.top_groups]
    fill = 0.0 if groups.fill == "zero" else -math.inf
    return [v if e // size in kept else fill for e, v in enumerate(c)]


def renormalised(r: Renormalise, w: Sequence[float]) -> list[float]:
    norm = sum(w) if r.norm == "sum" else math.sqrt(sum(v * v for v in w))
    return [v / max(norm + r.eps, r.floor) for v in w]


def sparsemixer(z: Sequence[float], jitter: float) -> tuple[list[int], list[float]]:
    """Two picks; an expert is masked out where (max - z) / max(|z|, max) is above twice the jitter."""
    ids: list[int] = []
    weights = []
    for _ in range(2):
        left = [e for e in range(len(z)) if e not in ids]
        best = max(left, key=lambda e: (z[e], -e))
        near = [e for e in left if (z[best] - z[e]) / max(abs(z[e]), z[best]) <= 2 * jitter]
        weights.append(1 / sum(math.exp(z[e] - z[best]) for e in near))
        ids.append(best)
    return ids, weights
