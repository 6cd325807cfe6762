# SPDX-License-Identifier: Apache-2.0
"""The oracles see every mistake of mutations.py and axis_mutations.py: what passes on the golden model fails on each mutant."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from colibri.quantise import Stored
from colibri_sim.golden import GoldenModel, RangeExceeded

from .axis_mutations import AXIS_MUTATIONS
from .mutations import MUTATIONS, Mutation
from .oracles import TOLERANCE, oracle, relative, weights
from .reference import Simulation
from .synthetic import AXES, golden, ids
from .synthetic import weights as synthetic_weights

# One of each kind; the others hold the same mathematics.
CASES = ["mixtral", "llama_linear", "mistral_swa", "mixtral_odd", "llama_tied_rope3", "mixtral_tied"]


def difference(name: str, mutation: Mutation) -> float:
    """How far a mutant's logits are from the answers to a checkpoint; infinite where it runs out of range."""
    try:
        with np.errstate(all="ignore"):
            if name in AXES:
                mutant = golden(AXES[name], kind=mutation.kind(), config=mutation.config(AXES[name]))
                return relative(mutant.forward(ids()).logits, simulated(name))
            case = oracle(name)
            mutant = case.golden(kind=mutation.kind(), config=mutation.config(case.config))
            return relative(mutant.forward(case.ids).logits[case.positions], case.logits)
    except RangeExceeded:
        return np.inf


@cache
def simulated(name: str) -> npt.NDArray[Any]:
    return Simulation(AXES[name], synthetic_weights(AXES[name], "f32")).logits(ids())


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


@pytest.mark.parametrize(
    ("name", "witness"), [(name, witness) for name, m in AXIS_MUTATIONS.items() for witness in m.witnesses]
)
def test_mutation_of_an_axis_is_seen_by_each_witness(name: str, witness: str) -> None:
    assert difference(witness, AXIS_MUTATIONS[name].mutation) > TOLERANCE


def test_no_mutation_is_not_seen() -> None:
    unchanged = Mutation({}, lambda c: c)
    witnesses = {witness for m in AXIS_MUTATIONS.values() for witness in m.witnesses}
    assert max(difference(case, unchanged) for case in witnesses.union(CASES)) <= TOLERANCE
    assert tied_difference(GoldenModel) <= TOLERANCE
