# SPDX-License-Identifier: Apache-2.0
"""The golden model against float64 arithmetic, for every stored format."""

from __future__ import annotations

import numpy as np
import pytest

from colibri_sim.golden import GoldenModel, TraceRecorder
from colibri_sim.golden.cache import KvFormat

from .oracles import NAMES, oracle, relative, weights
from .reference import Simulation

FLOAT_TOLERANCE = 2e-6
INTEGER_TOLERANCE = 2e-6
QUANTS = ["q8", "q8:32", "q8:64", "q8:128", "q4", "q4:64", "q4:row", "default=q4,experts=q8:32,embedding=f16,head=bf16"]
MODELS = ["mixtral", "mixtral_odd", "mixtral_tied", "mistral_swa", "llama_tied_rope3"]
FAMILIES = ["deepseek_v3", "gpt_oss", "jetmoe", "lfm2_moe", "llama4", "phimoe"]


# float32 angles at high positions are the contract's and the frameworks', not float64's
SHORT = [n for n in NAMES if not n.endswith("_long")]


@pytest.mark.parametrize(
    ("name", "quant"), [*((n, "f32") for n in SHORT), *((n, q) for n in MODELS for q in ("bf16", "f16"))]
)
def test_float_formats(name: str, quant: str) -> None:
    case = oracle(name)
    golden = case.golden(quant).forward(case.ids)
    assert relative(golden.logits, Simulation(case.config, weights(name, quant)).logits(case.ids)) <= FLOAT_TOLERANCE


@pytest.mark.parametrize("kv", ["f32", "f16", "q8"])
@pytest.mark.parametrize(
    ("name", "quant"), [*((n, q) for n in MODELS for q in QUANTS), *((n, q) for n in FAMILIES for q in ("q8", "q4:64"))]
)
def test_integer_formats(name: str, quant: str, kv: KvFormat) -> None:
    case = oracle(name)
    trace = TraceRecorder(case.config, keep=None)
    golden = case.golden(quant, kv=kv).forward(case.ids, trace=trace)
    simulation = Simulation(case.config, weights(name, quant), kv=kv, golden=trace)
    assert relative(golden.logits, simulation.logits(case.ids)) <= INTEGER_TOLERANCE
    for ours, theirs in zip(simulation.experts, golden.experts, strict=False):
        assert np.array_equal(ours, theirs)
    assert simulation.flips <= max(5, simulation.rounded // 2000)


@pytest.mark.parametrize(("quant", "limit"), [("q8", 0.06), ("q8:32", 0.06), ("q4", 0.06)])
def test_quantised_vectors_change_little(quant: str, limit: float) -> None:
    """The same integer weights with float activations: the difference is what quantising the vectors costs."""
    case = oracle("llama_tied_rope3")
    golden = case.golden(quant).forward(case.ids)
    plain = Simulation(case.config, weights(case.name, quant), integer=False).logits(case.ids)
    assert 1e-4 < relative(golden.logits, plain) < limit


@pytest.mark.parametrize(("kv", "least", "most"), [("f16", 1e-5, 1e-3), ("q8", 1e-4, 0.05)])
def test_a_smaller_kv_cache_differs_from_f32_and_only_a_little(kv: KvFormat, least: float, most: float) -> None:
    case = oracle("mixtral_tied")
    f32, smaller = (case.golden("f32", kv=k).forward(case.ids).logits for k in ("f32", kv))
    assert least < relative(smaller, f32) < most


def test_a_kv_format_that_does_not_exist_is_refused() -> None:
    case = oracle("llama")
    with pytest.raises(ValueError, match="kv is f32, f16 or q8"):
        GoldenModel(case.config, weights("llama", "f32"), kv="bf16")  # type: ignore[arg-type]  # the point
