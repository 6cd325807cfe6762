# SPDX-License-Identifier: Apache-2.0
"""Unquantised, the golden model is the reference framework's model (NUMERICS section 11)."""

from __future__ import annotations

import numpy as np
import pytest

from colibri_sim.golden import TraceName, TraceRecorder

from .oracles import DATA, NAMES, TOLERANCE, oracle, relative


def test_there_are_oracles() -> None:
    assert NAMES, "tests/oracles/data holds no golden.npz"


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_experts_are_the_frameworks(name: str) -> None:
    expected = oracle(name)
    result = expected.golden().forward(expected.ids)
    logits = result.logits[expected.positions]
    assert relative(logits, expected.logits) <= TOLERANCE
    assert np.array_equal(expected.logits.argmax(axis=-1), logits.argmax(axis=-1))
    for n, layer in enumerate(expected.config.layers):
        chosen = result.experts[n][expected.positions]
        router = layer.ffn.router
        if router is None:
            assert chosen.shape[1] == 0
        else:
            assert expected.experts is not None
            assert np.array_equal(expected.experts[:, n, : router.top_k], chosen)


@pytest.mark.parametrize("name", [n for n in NAMES if oracle(n).router_weights is not None])
def test_router_weights_are_the_frameworks(name: str) -> None:
    expected = oracle(name)
    trace = TraceRecorder(expected.config, keep={int(p) for p in expected.positions})
    expected.golden().forward(expected.ids, trace=trace)
    assert expected.router_weights is not None
    for row, position in enumerate(expected.positions):
        values = trace.values(int(position))
        for layer in range(len(expected.config.layers)):
            actual = values[TraceName(layer, "expert_weights", None)]
            assert np.abs(actual - expected.router_weights[row, layer]).max() <= 1e-5


def test_the_experts_of_a_mixture_of_attention_are_the_frameworks() -> None:
    expected = oracle("jetmoe")
    attn_experts = np.load(DATA / "jetmoe" / "golden.npz")["attn_experts"]
    trace = TraceRecorder(expected.config, keep=None)
    expected.golden().forward(expected.ids, trace=trace)
    for row, position in enumerate(expected.positions):
        for layer in range(len(expected.config.layers)):
            actual = trace.values(int(position))[TraceName(layer, "attn_expert_ids", None)]
            assert np.array_equal(attn_experts[row, layer], actual)


@pytest.mark.parametrize("names", [("mixtral", "mixtral_fused", "mixtral_sharded"), ("llama", "llama_v4config")])
def test_the_same_weights_in_another_container_give_the_same_bits(names: tuple[str, ...]) -> None:
    results = [oracle(n).golden().forward(oracle(n).ids).logits for n in names]
    for other in results[1:]:
        assert np.array_equal(results[0].view(np.uint32), other.view(np.uint32))
