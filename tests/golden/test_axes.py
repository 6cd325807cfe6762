# SPDX-License-Identifier: Apache-2.0
"""Every axis, and combinations of them, against the float64 simulation; a batch is one token at a time for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from colibri.combinations import contradictions
from colibri.model import ModelConfig
from colibri_sim.golden import TraceRecorder
from colibri_sim.golden.cache import KvFormat

from .oracles import relative
from .reference import Simulation
from .synthetic import AXES, drawn, golden, ids, weights

TOLERANCE = 4e-6
DRAWN = 28


def against_the_simulation(config: ModelConfig, quant: str, kv: KvFormat) -> None:
    trace = TraceRecorder(config, keep=None)
    result = golden(config, quant, kv=kv).forward(ids(), trace=trace)
    simulation = Simulation(config, weights(config, quant), kv=kv, golden=trace)
    assert relative(result.logits, simulation.logits(ids())) <= TOLERANCE
    for ours, theirs in zip(simulation.experts, result.experts, strict=True):
        assert np.array_equal(ours, theirs)
    assert simulation.flips <= simulation.rounded // 2000
    assert None not in trace.crcs(0)


FORMATS: list[tuple[str, KvFormat]] = [("f32", "f32"), ("q8", "q8"), ("q8:32", "f16"), ("q4", "q8")]


@pytest.mark.parametrize(("quant", "kv"), FORMATS[:2])
@pytest.mark.parametrize("axis", AXES)
def test_axis(axis: str, quant: str, kv: KvFormat) -> None:
    against_the_simulation(AXES[axis], quant, kv)


@pytest.mark.parametrize("seed", range(DRAWN))
def test_drawn_axes(seed: int) -> None:
    config = drawn(seed)
    assert list(contradictions(config)) == []
    against_the_simulation(config, *FORMATS[seed % 4])


@pytest.mark.parametrize("config", [*AXES.values(), *map(drawn, range(4))], ids=[*AXES, *map(str, range(4))])
def test_a_batch_is_one_token_at_a_time(config: ModelConfig) -> None:
    tokens = ids(11)
    traces = [TraceRecorder(config) for _ in range(2)]
    whole = golden(config, "q8", kv="q8").forward(tokens, trace=traces[0])
    model = golden(config, "q8", kv="q8")
    model.forward(tokens[:9])
    model.rewind(0)
    for token in tokens:
        last = model.forward([token], trace=traces[1])
    assert np.array_equal(whole.logits[-1:].view(np.uint32), last.logits.view(np.uint32))
    for position in range(len(tokens)):
        assert traces[0].crcs(position) == traces[1].crcs(position)
