# SPDX-License-Identifier: Apache-2.0
"""The edges of routing: ties, zeros, all experts, one expert, masked groups, numbers out of range."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from colibri.axes import Groups, Hierarchy, Renormalise, Router
from colibri.quantise import Stored
from colibri_sim.golden import GoldenModel, RangeExceeded
from colibri_sim.golden.functions import snap
from colibri_sim.golden.operators import Call

from .synthetic import AXES, config, ids, router, weights

ROUTED = {name: c for name, c in AXES.items() if c.layers[0].ffn.router is not None}
E = 6


class Fed(GoldenModel):
    """A golden model whose router logits are given; they are snapped as products are."""

    z: Any = None

    def router_logits(self, *_: Any) -> Any:
        return snap(self.z)

    def correct(self, name: str, s: Any) -> Any:
        return s


def route(r: Router, z: list[float]) -> tuple[list[int], list[float]]:
    """The choice of one token from its logits, with a correction of zeros."""
    model = Fed(config(ffn=replace(router(), router=r)), weights(config(), "f32"))
    model.z = [z]
    chosen, w = model.route(Call(np.zeros(1, np.int64), None, 0), r, "router", np.zeros((1, 1), np.float32))
    return chosen[0].tolist(), w[0].tolist()


def variants(k: int, n: int = E) -> list[Router]:
    scored: dict[str, Any] = {"score": "sigmoid", "weights": "score"}
    return [
        Router(n, k),
        Router(n, k, correction=True, **scored),
        Router(n, k, score="softmax", weights="score", renormalise=Renormalise()),
        Router(n, k, weights="sigmoid"),
        Router(n, k, weights="one"),
        Router(n, k, renormalise=Renormalise("l2", 1e-6), **scored),
    ]


@pytest.mark.parametrize("r", variants(3), ids=str)
@pytest.mark.parametrize("value", [0.0, -0.0, 1.25, -3.0, 2.0**60, -(2.0**60)])
def test_equal_logits_choose_the_first_experts(r: Router, value: float) -> None:
    chosen, w = route(r, [value] * E)
    assert chosen == [0, 1, 2]
    assert len(set(w)) == 1
    assert np.isfinite(w).all()


@pytest.mark.parametrize("r", variants(2), ids=str)
def test_zero_is_not_above_minus_zero(r: Router) -> None:
    below = 2.0**-41  # flushed to 0, whatever its sign
    for z in (
        [-0.0, 0.0, -0.0, 0.0, 0.0, 0.0],
        [0.0, -0.0, 0.0, -0.0, 0.0, 0.0],
        [-below, 0.0, below, -0.0, 0.0, below],
    ):
        assert route(r, z)[0] == [0, 1]
    model = Fed(config(ffn=replace(router(), router=r)), weights(config(), "f32"))
    assert model.select(r, np.array([[-0.0, 0.0, -1.0, 0.0, -0.0, 0.0]], np.float32)).tolist() == [[0, 1]]


@pytest.mark.parametrize("r", variants(E), ids=str)
def test_all_experts_come_in_descending_order(r: Router) -> None:
    chosen, w = route(r, [0.5, -1.0, 2.0, 0.5, -4.0, 1.0])
    assert chosen == [2, 5, 0, 3, 1, 4]
    assert w == sorted(w, reverse=True)


@pytest.mark.parametrize("r", variants(1, n=1), ids=str)
@pytest.mark.parametrize("z", [-50.0, 0.0, 3.0])
def test_one_expert_is_chosen_always(r: Router, z: float) -> None:
    chosen, w = route(r, [z])
    assert chosen == [0]
    scored = r.weights == "sigmoid" or (r.score == "sigmoid" and r.renormalise is None)
    if not scored and not (z == -50.0 and r.score == "sigmoid"):  # a score that flushed to 0 weighs 0
        assert w == pytest.approx([1.0], abs=3e-6)


@pytest.mark.parametrize("score", ["max", "top2"])
def test_of_equal_groups_the_first_stay(score: Any) -> None:
    for fill in ("zero", "excluded"):
        r = Router(E, 3, score="sigmoid", weights="score", groups=Groups(3, 2, score, fill))  # type: ignore[arg-type]  # a literal
        assert route(r, [1.0] * E)[0] == [0, 1, 2]
        assert route(r, [0.0, 1.0, 1.0, 0.0, 1.0, 0.0])[0] == [1, 2, 0]


def test_a_group_of_negative_values_loses_to_the_zeros_of_the_others() -> None:
    groups = Groups(3, 1, "max", "zero")
    z = [-1.0, -2.0, -5.0, -5.0, -6.0, -7.0]
    assert route(Router(E, 2, groups=groups), z)[0] == [2, 3]
    assert route(Router(E, 2, groups=replace(groups, fill="excluded")), z)[0] == [0, 1]


def test_a_sum_of_zeros_gives_weights_of_zero() -> None:
    for renormalise in (Renormalise(), Renormalise("l2"), Renormalise(eps=1e-20), Renormalise(floor=1e-12)):
        r = Router(E, 2, score="sigmoid", weights="score", renormalise=renormalise)
        assert route(r, [-100.0] * E) == ([0, 1], [0.0, 0.0])


def test_sparsemixer_ties_and_signs() -> None:
    r = Router(E, 2, method="sparsemixer", jitter=0.1)
    assert route(r, [2.0] * E) == ([0, 1], [float(np.float32(1) / np.float32(6)), float(np.float32(1) / np.float32(5))])
    assert route(r, [0.0] * E)[0] == [0, 1]
    assert route(r, [-0.0, 0.0, -1.0, -1.0, -1.0, -1.0]) == ([0, 1], [0.5, 1.0])
    chosen, w = route(r, [-1.0, -1.1, -5.0, -5.0, -5.0, -5.0])  # 0.1 <= 1.1 * 0.2: both take part
    assert chosen == [0, 1]
    assert 0.5 < w[0] < 0.6
    assert w[1] == 1.0
    assert route(Router(2, 2, method="sparsemixer", jitter=0.1), [1.0, 3.0]) == ([1, 0], [1.0, 1.0])


PROBABILITIES = [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.03125]
"""Exact sums, but for the softmax that gives them: fed as scores."""


def fed_scores(p: float, k: int, s: list[float], **axes: Any) -> tuple[list[int], list[float]]:
    """The choice by given scores."""

    class Scored(Fed):
        def scores(self, router: Router, z: Any) -> Any:
            return snap(np.array(z, np.float32))

    r = Router(len(s), k, score="softmax", weights="score", top_p=p, **axes)
    model = Scored(config(ffn=replace(router(), router=r)), weights(config(), "f32"))
    model.z = np.array([s], np.float32)
    chosen, w = model.route(Call(np.zeros(1, np.int64), None, 0), r, "router", np.zeros((1, 1), np.float32))
    return chosen[0].tolist(), w[0].tolist()


@pytest.mark.parametrize(
    ("p", "n"),
    [
        (2.0**-40, 1),
        (0.5, 1),
        (np.nextafter(np.float32(0.5), np.float32(1)), 2),
        (0.75, 2),
        (0.76, 3),
        (0.96875, 5),
        (1.0, 6),
    ],
)
@pytest.mark.parametrize("k", [1, 3, E])
def test_the_fewest_experts_whose_scores_sum_to_p(p: float, n: int, k: int) -> None:
    n = min(n, k)
    assert fed_scores(float(p), k, PROBABILITIES) == (
        [*range(n), *[-1] * (k - n)],
        [*PROBABILITIES[:n], *[0.0] * (k - n)],
    )


def test_ties_in_a_share_go_to_the_lower_index() -> None:
    assert fed_scores(0.5, E, [0.125, 0.25, 0.25, 0.125, 0.125, 0.125]) == (
        [1, 2, -1, -1, -1, -1],
        [0.25, 0.25, 0, 0, 0, 0],
    )
    for k in range(1, E + 1):
        chosen, w = fed_scores(1.0, k, [2.0**-3] * E)  # they sum to less than 1: all that may
        assert (chosen, w) == (list(range(k)), [2.0**-3] * k)
    assert fed_scores(0.25, 4, [2.0**-3] * E)[0] == [0, 1, -1, -1]


def test_a_share_of_zeros_is_all_that_may_run() -> None:
    assert fed_scores(0.5, 3, [0.0] * E) == ([0, 1, 2], [0.0] * 3)


def test_a_share_that_is_not_a_number_ends_with_the_expert_that_made_it_so() -> None:
    """Its weight makes the sum of the layer leave the range, which is a status; no id is ever another expert's than a score's."""
    assert fed_scores(0.9, 4, [0.5, 0.25, 0.125, 0.125, 0.0, 0.0])[0] == [0, 1, 2, 3]
    model = Fed(config(ffn=router()), weights(config(), "f32"))
    s = np.array([[0.5, np.nan, 0.25, 0.125, 0.0, 0.0]], np.float32)
    ids_ = np.array([[0, 1, 2, 3]], np.int32)
    assert model.shortest_prefix(np.float32(0.9), s, ids_).tolist() == [[0, 1, -1, -1]]


def test_the_share_is_of_the_scores_and_not_of_what_reorders_them() -> None:
    class Corrected(Fed):
        def correct(self, name: str, s: Any) -> Any:
            return snap(s + np.array([[0, 0, 0, 0, 0, 1]], np.float32))

    r = Router(E, 3, score="sigmoid", correction=True, weights="score", top_p=0.75)
    model = Corrected(config(ffn=replace(router(), router=r)), weights(config(), "f32"))
    model.z = [[2.0, -30.0, 0.0, -30.0, -30.0, -1.0]]
    chosen, _ = model.route(Call(np.zeros(1, np.int64), None, 0), r, "router", np.zeros((1, 1), np.float32))
    assert chosen[0].tolist() == [5, 0, -1]  # 0.27 and 0.88; with the correction 5 alone would be enough


def test_a_share_is_renormalised_over_those_that_run() -> None:
    chosen, w = fed_scores(0.7, 4, PROBABILITIES, renormalise=Renormalise(), scale=3.0)
    assert (chosen, w) == ([0, 1, -1, -1], [2.0, 1.0, 0.0, 0.0])


def two_levels(primary: list[float], z: list[float], k: int, top_groups: int) -> tuple[list[int], list[float]]:
    r = Router(len(z), k, hierarchy=Hierarchy(len(primary), top_groups))
    model = Fed(config(ffn=replace(router(), router=r)), weights(config(), "f32"))
    assert r.hierarchy is not None
    ids, w = model.by_hierarchy(r, r.hierarchy, snap(np.array([primary], np.float32)), snap(np.array([z], np.float32)))
    return ids[0].tolist(), w[0].tolist()


def test_ties_on_both_levels_go_to_the_lower_index() -> None:
    assert two_levels([1.0] * 3, [-2.0] * 6, 4, 2) == ([0, 1, 2, 3], [0.25] * 4)
    assert two_levels([0.0, 5.0, 0.0], [9.0, 9.0, 0.0, 0.0, 9.0, 9.0], 2, 2)[0] == [2, 0]


def test_a_group_wins_by_its_own_gate_and_not_by_its_experts() -> None:
    ids, w = two_levels([0.0, 1.0], [50.0, 40.0, -1.0, -1.0], 2, 1)
    assert (ids, w) == ([2, 3], [0.5, 0.5])


def test_all_groups_and_all_experts_are_the_product_of_two_softmaxes() -> None:
    primary, z = np.array([0.5, -1.0, 0.25]), np.array([[1.0, 3.0], [0.0, 0.0], [-2.0, 1.0]])
    ids, w = two_levels(primary.tolist(), z.ravel().tolist(), 6, 3)
    p = np.exp(primary) / np.exp(primary).sum()
    q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    assert ids == [1, 0, 5, 4, 2, 3]
    assert w == pytest.approx((p[:, None] * q).ravel()[ids].tolist(), rel=1e-6)
    assert sum(w) == pytest.approx(1, rel=1e-6)


def test_one_group_is_a_flat_router() -> None:
    z = [0.5, -1.0, 2.0, 0.5, -4.0, 1.0]
    assert two_levels([-3.0], z, 3, 1) == route(Router(E, 3), z)


@pytest.mark.parametrize("name", ROUTED)
def test_equal_router_rows_choose_in_order(name: str) -> None:
    """In whole models: with equal rows, no bias and no correction every choice is a tie."""
    of = ROUTED[name]

    def equal(wanted: str) -> Stored:
        stored = weights(of, "f32")(wanted)
        if wanted.endswith(("router.bias", "router.correction")):
            return replace(stored, data=np.zeros_like(stored.data))
        if not wanted.endswith("router.weight"):
            return stored
        return replace(stored, data=np.broadcast_to(stored.data[:1], stored.data.shape).copy())

    result = GoldenModel(of, equal).forward(ids(6))
    for layer, chosen in zip(of.layers, result.experts, strict=True):
        r = layer.ffn.router
        below_zero = r is not None and r.groups is not None and r.groups.fill == "zero"
        if r is not None and not below_zero:  # there the zeros of the other groups may come first
            if r.hierarchy is not None:  # the primary rows are not equal
                chosen = chosen % (r.n_experts // r.hierarchy.n_groups)
                expected = np.tile(np.arange(r.top_k // r.hierarchy.top_groups), r.hierarchy.top_groups)
            else:
                expected = np.where(chosen < 0, -1, np.arange(r.top_k))
                assert (chosen[:, 0] == 0).all()
            assert np.array_equal(chosen, np.broadcast_to(expected, chosen.shape))


@pytest.mark.parametrize("name", ["plain", "top-p", "hierarchy", "mixed shared block"])
@pytest.mark.parametrize("tensor", ["attn.o.weight", "experts.2.up.weight", "experts.1.down.weight", "ffn_norm.weight"])
def test_no_router_sees_what_is_not_finite(tensor: str, name: str) -> None:
    """Numbers out of range end the step with a status before a router reads them."""
    of = AXES[name]
    seen = []

    class Watched(GoldenModel):
        def router_logits(self, router: Router, name: str, n: Any) -> Any:
            seen.append(bool(np.isfinite(n).all()))
            return GoldenModel.router_logits(self, router, name, n)

    def huge(wanted: str) -> Stored:
        stored = weights(of, "f32")(wanted)
        grown = stored.data * np.float32(2.0**49 / np.abs(stored.data).max())
        return replace(stored, data=grown) if wanted == f"layers.0.{tensor}" else stored

    model = Watched(of, huge)
    with pytest.raises(RangeExceeded):
        one_by_one(model)
    assert all(seen)


def one_by_one(model: GoldenModel) -> None:
    for token in ids():
        model.forward([token])
