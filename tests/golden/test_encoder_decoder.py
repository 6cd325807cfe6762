# SPDX-License-Identifier: Apache-2.0
"""Encoder and decoder: transformers' logits and experts in generation, also where an expert is full (NUMERICS 7.9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from colibri.axes import NO_FFN, Attention, Layer, RelativeBias, Router
from colibri.combinations import contradictions
from colibri.model import Encoder, ModelConfig
from colibri_sim.golden import GoldenModel, SourceRecorder, TraceName
from colibri_sim.golden.fma import F32Array
from colibri_sim.golden.operators import Call, I32Array

from .encoder_decoder import NAMES, oracle
from .oracles import TOLERANCE, relative


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_experts_are_the_frameworks(name: str) -> None:
    expected = oracle(name)
    golden = expected.golden()
    recorder = SourceRecorder(expected.model.config, keep=True)
    encoded = golden.encode(expected.source, trace=recorder)
    result = golden.forward(expected.ids)
    assert relative(result.logits, expected.answers["logits"]) <= TOLERANCE
    assert np.array_equal(expected.answers["logits"].argmax(axis=-1), result.logits.argmax(axis=-1))
    for n, chosen in enumerate(encoded):
        said, room = expected.answers["source_experts"][:, n], expected.answers["source_room"][:, n]
        assert np.array_equal(chosen[:, 0] if chosen.shape[1] else np.full(len(said), -1), said)
        if chosen.shape[1]:
            weights = np.array(recorder.values[TraceName(n, "expert_weights", None)])[:, 0]
            assert np.array_equal(weights != 0, room)
    for n, chosen in enumerate(result.experts[1::2]):  # the layers with cross-attention
        said = expected.answers["experts"][:, n]
        assert np.array_equal(chosen[:, 0] if chosen.shape[1] else np.full(len(said), -1), said)


def test_an_oracle_drops_tokens_and_differs_from_the_whole_sequence_at_once() -> None:
    answers = oracle("switch_full").answers
    assert not answers["source_room"].all()
    assert relative(answers["whole_logits"], answers["logits"]) > 0.01


def test_a_source_is_encoded_once_and_stays() -> None:
    expected = oracle("switch_full")
    golden = expected.golden()
    golden.encode(expected.source)
    whole = golden.forward(expected.ids).logits
    golden.rewind(0)
    steps = [golden.forward([token]).logits[0] for token in expected.ids]
    assert np.array_equal(whole.view(np.uint32), np.array(steps).view(np.uint32))
    golden.encode(expected.source[:4])
    assert golden.position == 0
    assert relative(golden.forward(expected.ids).logits, whole) > 0.01


class _Causal(GoldenModel):
    def visible(self, a: Attention, positions: Any, end: int) -> Any:
        return super().visible(replace(a, over="past"), positions, end)


class _NoCapacity(GoldenModel):
    def limit_to_capacity(self, capacity: int, ids: I32Array, weights: F32Array) -> F32Array:
        return weights


class _OneMore(GoldenModel):
    def limit_to_capacity(self, capacity: int, ids: I32Array, weights: F32Array) -> F32Array:
        return super().limit_to_capacity(capacity + 1, ids, weights)


class _OtherHead(GoldenModel):
    def bias_scores(self, a: Attention, head: int, positions: Any, z: F32Array) -> F32Array:
        return super().bias_scores(a, (head + 1) % a.n_heads, positions, z)


class _OtherWay(GoldenModel):
    def bias_scores(self, a: Attention, head: int, positions: Any, z: F32Array) -> F32Array:
        if a.over == "past":
            return super().bias_scores(a, head, positions, z)
        n = z.shape[1]
        return super().bias_scores(a, head, n - 1 - positions, z[:, ::-1])[:, ::-1]


class _Unnormed(GoldenModel):
    def cross_keys(self, call: Call, a: Attention, n: F32Array) -> None:
        super().cross_keys(call, a, n * np.float32(2))


@pytest.mark.parametrize("kind", [_Causal, _NoCapacity, _OneMore, _OtherHead, _OtherWay, _Unnormed])
def test_a_fault_shows(kind: type[GoldenModel]) -> None:
    expected = oracle("switch_full")
    golden = expected.golden(kind=kind)
    golden.encode(expected.source)
    assert relative(golden.forward(expected.ids).logits, expected.answers["logits"]) > 100 * TOLERANCE


def test_calls_that_cannot_be() -> None:
    expected = oracle("switch_full")
    golden = expected.golden(config=_with(expected.model.config, max_source=4))
    with pytest.raises(ValueError, match="encode a source first"):
        golden.forward([0])
    for ids, problem in (([], "at least one"), ([96], "at least one"), ([1] * 5, "exceed the longest source, 4")):
        with pytest.raises(ValueError, match=problem):
            golden.encode(ids)
    golden.encode([1] * 4)
    golden.forward([0])


def _with(config: ModelConfig, **fields: Any) -> ModelConfig:
    assert config.encoder is not None
    return replace(config, encoder=replace(config.encoder, **fields))


def _layer(n: int, change: Callable[[Layer], Layer]) -> Callable[[ModelConfig], ModelConfig]:
    return lambda c: replace(c, layers=tuple(change(x) if i == n else x for i, x in enumerate(c.layers)))


def _mixer(n: int, **fields: Any) -> Callable[[ModelConfig], ModelConfig]:
    return _layer(n, lambda layer: replace(layer, mixer=replace(layer.mixer, **fields)))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda c: replace(c, encoder=None), "layer 0: source is what it sees"),
        (lambda c: _with(c, n_layers=10), "encoder: 10 of 10 layers"),
        (lambda c: _with(c, max_source=0), "encoder.max_source is 0"),
        (_mixer(0, over="past"), "layer 0: past is what it sees"),
        (_mixer(4, relative_bias=RelativeBias(12, 21)), "relative_bias differs from that of another layer"),
        (_mixer(4, relative_bias=RelativeBias(1, 21)), "a relative_bias with 0 buckets"),
        (_mixer(4, relative_bias=RelativeBias(12, 6)), "a relative_bias with 6 buckets of one distance, up to 6"),
        (_mixer(4, window=3), "a relative_bias together with window"),
        (_mixer(5, relative_bias=RelativeBias(12, 20)), "attention over the encoded together with relative_bias"),
        (_mixer(0, clip=1.0), "attention over the source together with clip"),
        (
            _layer(5, lambda x: replace(x, ffn=replace(x.ffn, router=Router(4, 1, capacity=2)))),
            "layer 5: router: a capacity where tokens come one by one",
        ),
        (
            _layer(1, lambda x: replace(x, ffn=replace(x.ffn, router=Router(4, 2, capacity=2)))),
            "a capacity with more than one expert",
        ),
        (_layer(4, lambda x: replace(x, ffn=replace(NO_FFN, gated=False))), "ffn: axes of a feed-forward"),
    ],
)
def test_what_has_no_arithmetic(change: Callable[[ModelConfig], ModelConfig], problem: str) -> None:
    config = oracle("switch_full").model.config
    assert not list(contradictions(config))
    found = list(contradictions(change(config)))
    assert any(problem in text for text in found), found


def test_cross_attention_needs_an_encoder() -> None:
    config = oracle("switch_full").model.config
    alone = replace(config, encoder=None, layers=config.layers[4:])
    assert any("without an encoder" in text for text in contradictions(alone))
    assert isinstance(config.encoder, Encoder)
