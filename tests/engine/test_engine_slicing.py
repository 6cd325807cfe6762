# SPDX-License-Identifier: Apache-2.0
"""The same bits in any slicing, cancelled, repeated or gone back, for every axis: each mixer keeps what it needs of the past."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from engine_tiny import CASES, Engine, stages
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NAMES = [*(c.name for c in CASES), "every_f32", "every_f16", "every_q8"]
IDS = [3, 36, 0, 17, 17, 9, 21, 5, 30]


@pytest.mark.parametrize("name", NAMES)
def test_any_slicing_gives_the_same_bits(name: str, engine_of: Callable[..., Engine]) -> None:
    whole = engine_of(name)
    assert whole.forward(IDS) == 0
    single = engine_of(name)
    for i, token in enumerate(IDS):
        assert single.position == i
        assert single.forward([token], logits=i == len(IDS) - 1) == 0
    assert whole.snapshot() == single.snapshot()
    rng = random.Random(name)
    for budget in (lambda: 0, lambda: 1, lambda: rng.choice([0, 1, 7, 50, 333, 5000]), lambda: 2**32 - 1):
        sliced = engine_of(name)
        n_slices = 1
        while (status := sliced.step(IDS, budget())) == 1:
            n_slices += 1
            assert n_slices < 100_000
        assert status == 0
        assert whole.snapshot() == sliced.snapshot()


# How a sequence may be computed: pieces of ids; each piece a sequence of budgets for colibri_step, after which it is cancelled
# and begun again, or completed by colibri_forward. A piece of no budgets is one colibri_forward.
BUDGETS = st.lists(st.sampled_from([0, 1, 3, 40, 333, 2000, 50_000, 2**32 - 1]), max_size=6)
PIECES = st.lists(st.tuples(st.integers(1, 5), BUDGETS, st.booleans()), max_size=6)


@given(name=st.sampled_from(NAMES), pieces=PIECES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_way_to_the_same_ids_gives_the_same_bits(
    name: str, pieces: list[tuple[int, list[int], bool]], engine_of: Callable[..., Engine]
) -> None:
    whole, engine = engine_of(name), engine_of(name)
    assert whole.forward(IDS) == 0
    for n_ids, budgets, cancelled in [*pieces, (len(IDS), [], False)]:
        done = engine.position
        ids = IDS[done : done + n_ids]
        if not ids:
            break
        last = done + len(ids) == len(IDS)
        status = 1
        for budget in budgets:
            if status == 1:
                status = engine.step(ids, budget, last)
        if status == 1 and cancelled:
            assert engine.rewind(done) == 0
        if status == 1:
            status = engine.forward(ids, last)
        assert status == 0
        assert engine.position == done + len(ids)
    assert whole.snapshot() == engine.snapshot()


def test_stage_end_slices_walk_the_stages_of_the_design(engine_of: Callable[..., Engine]) -> None:
    names = list(stages())
    attention = ["attn_norm", "q", "k", "v", "rope", "attention", "o", "attn_residual", "ffn_norm"]
    block = ["gate", "up", "act", "down"]
    layer = [*attention, "router", *block * 2, "ffn_residual"]
    for logits, end in ((True, ["final_norm", "head"]), (False, [])):
        engine = engine_of("moe_f32")
        walked = []
        status = 1
        while status == 1:
            walked.append(names[int(engine.header[4])].lower())
            status = engine.step([5, 6], 0, logits)
        assert (["embed"] + layer * 2) * 2 + end == walked
    dense = engine_of("dense")
    walked = []
    status = 1
    while status == 1:
        walked.append(names[int(dense.header[4])].lower())
        status = dense.step([5], 0)
    assert ["embed", *[*attention, *block, "ffn_residual"] * 2, "final_norm", "head"] == walked


@pytest.mark.parametrize("max_macs", [1, 100, 1000])
def test_a_slice_ends_at_most_one_unit_past_its_budget(max_macs: int, engine_of: Callable[..., Engine]) -> None:
    engine = engine_of("moe_f32")
    c = engine.case
    per_token = c.layers * (c.hidden * c.head_dim * (c.heads * 2 + c.kv_heads * 2) + c.top_k * 3 * c.hidden * c.ffn)
    n_slices = 1
    while engine.step([1], max_macs) == 1:
        n_slices += 1
    largest_unit = c.heads * c.head_dim + c.kv_heads * c.head_dim
    assert n_slices >= per_token // (max_macs + largest_unit)


@pytest.mark.parametrize("name", NAMES)
def test_rewinding_and_repeating_gives_the_same_bits(name: str, engine_of: Callable[..., Engine]) -> None:
    engine = engine_of(name)
    assert engine.forward(IDS) == 0
    first = engine.snapshot()
    assert engine.rewind(4) == 0
    assert engine.position == 4
    assert engine.forward([1, 2]) == 0
    assert engine.step([8, 8, 8], 700) == 1
    assert engine.rewind(4) == 0
    assert engine.forward(IDS[4:]) == 0
    assert first == engine.snapshot()
