# SPDX-License-Identifier: Apache-2.0
"""The oracles see every mistake of mutations.py: the tests that pass on the golden model fail on each mutant."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from colibri.quantise import Stored
from colibri_sim.golden import GoldenModel, RangeExceeded

from .mutations import MUTATIONS, Mutation
from .oracles import TOLERANCE, oracle, relative, weights
from .reference import Simulation

# One of each kind; the others hold the same mathematics.
CASES = ["mixtral", "llama_linear", "mistral_swa", "mixtral_odd", "llama_tied_rope3", "mixtral_tied"]


def difference(name: str, mutation: Mutation) -> float:
    """How far a mutant's logits are from the framework's; infinite where it runs out of range."""
    case = oracle(name)
    mutant = case.golden(kind=mutation.kind(), config=mutation.config(case.config))
    try:
        with np.errstate(all="ignore"):
            return relative(mutant.forward(case.ids).logits[case.positions], case.logits)
    except RangeExceeded:
        return np.inf


def tied_weights(name: str) -> Stored:
    """The oracle mixtral with equal router rows: every choice is a tie."""
    stored = weights("mixtral", "f32")(name)
    if not name.endswith("router.weight"):
        return stored
    rows = np.broadcast_to(stored.data[:1], stored.data.shape).copy()
    return Stored(stored.name, stored.format, stored.rows, stored.cols, rows)


@cache
def tied_answer() -> npt.NDArray[Any]:
    """No framework promises an order of ties: the float64 simulation states the contract's, the lower index."""
    return Simulation(oracle("mixtral").config, tied_weights).logits(oracle("mixtral").ids)


def tied_difference(kind: type[GoldenModel]) -> float:
    case = oracle("mixtral")
    return relative(kind(case.config, tied_weights).forward(case.ids).logits, tied_answer())


def test_there_are_enough_mutations() -> None:
    assert len(MUTATIONS) >= 60


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_seen(name: str) -> None:
    mutation = MUTATIONS[name]
    if name == "ties to the higher index":
        assert tied_difference(mutation.kind()) > TOLERANCE
    else:
        assert any(difference(case, mutation) > TOLERANCE for case in CASES)


def test_no_mutation_is_not_seen() -> None:
    unchanged = Mutation({}, lambda c: c)
    assert max(difference(case, unchanged) for case in CASES) <= TOLERANCE
    assert tied_difference(GoldenModel) <= TOLERANCE
