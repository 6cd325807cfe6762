# SPDX-License-Identifier: Apache-2.0
"""The golden model as an object: its sequence, its trace, what it refuses, what it asserts of itself."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import colibri_sim.golden
from colibri.quantise import Stored
from colibri_sim.golden import (
    ContractViolation,
    GoldenModel,
    RangeExceeded,
    Result,
    TraceName,
    TraceRecorder,
    trace_names,
)
from colibri_sim.golden.cache import KvFormat
from colibri_sim.golden.checks import check_snapped

from .oracles import oracle, weights

MODELS = ["mixtral", "mixtral_odd", "llama_tied_rope3", "mistral_swa"]


def one_by_one(model: GoldenModel, ids: list[int], trace: TraceRecorder | None = None) -> list[Result]:
    return [model.forward([i], trace=trace) for i in ids]


def same_bits(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a.view(np.uint32), b.view(np.uint32)))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("quant", "kv"), [("f32", "f32"), ("q8", "f32"), ("q8:32", "q8"), ("q4", "q8")])
def test_a_batch_is_one_token_at_a_time(name: str, quant: str, kv: KvFormat) -> None:
    case = oracle(name)
    traces = [TraceRecorder(case.config, keep=None) for _ in range(3)]
    ids = case.ids[:24]
    whole = case.golden(quant, kv=kv).forward(ids, trace=traces[0])
    single, parts = case.golden(quant, kv=kv), case.golden(quant, kv=kv)
    rows = one_by_one(single, ids, traces[1])
    cuts = [parts.forward(ids[a:b], trace=traces[2]) for a, b in ((0, 5), (5, 6), (6, len(ids)))]
    assert same_bits(whole.logits, np.concatenate([r.logits for r in rows]))
    assert same_bits(whole.logits, np.concatenate([r.logits for r in cuts]))
    for layer in range(len(case.config.layers)):
        assert np.array_equal(whole.experts[layer], np.concatenate([r.experts[layer] for r in rows]))
    for position in range(len(ids)):
        assert traces[0].crcs(position) == traces[1].crcs(position) == traces[2].crcs(position)
        assert None not in traces[0].crcs(position)


def test_rewind_takes_back() -> None:
    case = oracle("mixtral")
    model = case.golden("q8", kv="q8")
    first = model.forward(case.ids[:20])
    model.rewind(7)
    assert model.position == 7
    assert same_bits(first.logits[7:], model.forward(case.ids[7:20]).logits)
    model.rewind(0)
    assert same_bits(first.logits, model.forward(case.ids[:20]).logits)
    with pytest.raises(ValueError, match="cannot rewind from position 20 to 21"):
        model.rewind(21)
    with pytest.raises(ValueError, match="cannot rewind"):
        model.rewind(-1)


def test_last_only_gives_the_last_logits() -> None:
    case = oracle("mixtral")
    trace = TraceRecorder(case.config)
    last = case.golden("q8").forward(case.ids, last_only=True, trace=trace)
    assert same_bits(case.golden("q8").forward(case.ids).logits[-1:], last.logits)
    assert last.experts[0].shape == (len(case.ids), 2)
    assert trace.crcs(0)[-2:] == [None, None]
    assert None not in trace.crcs(len(case.ids) - 1)


@pytest.mark.parametrize("ids", [[], [-1], [96], [1, 2, 200]])
def test_bad_ids_are_refused_and_change_nothing(ids: list[int]) -> None:
    model = oracle("mixtral").golden()
    with pytest.raises(ValueError, match=r"ids: at least one, each in 0\.\.95"):
        model.forward(ids)
    assert model.position == 0


def test_the_context_ends() -> None:
    case = oracle("mixtral")
    model = case.golden(config=replace(case.config, max_seq=4))
    model.forward([1, 2, 3])
    with pytest.raises(ValueError, match="3 \\+ 2 tokens exceed the context of 4"):
        model.forward([4, 5])
    assert model.forward([4]).logits.shape == (1, 96)


# --- trace


def test_trace_names_of_a_mixture_and_of_a_dense_model() -> None:
    names = trace_names(oracle("mixtral").config)
    assert names[0] == TraceName(None, "embed", None)
    assert [n.tensor for n in names if n.layer == 1] == [
        *["attn_norm", "q", "k", "v", "q_rope", "k_rope", "attn", "attn_out", "attn_residual", "ffn_norm"],
        *["router", "expert_ids", "expert_weights"],
        *["gate", "up", "act", "down"] * 2,
        "ffn_residual",
    ]
    assert [n.slot for n in names if n.layer == 1 and n.tensor == "down"] == [0, 1]
    assert [n.tensor for n in names[-2:]] == ["final_norm", "logits"]
    dense = [n for n in trace_names(oracle("llama").config) if n.layer == 0]
    assert [n.tensor for n in dense][-6:] == ["ffn_norm", "gate", "up", "act", "down", "ffn_residual"]
    assert {n.slot for n in dense if n.tensor in ("gate", "up", "act", "down")} == {0}


def test_trace_keeps_the_values_of_chosen_positions() -> None:
    case = oracle("mixtral")
    trace = TraceRecorder(case.config, keep={3})
    result = case.golden().forward(case.ids[:5], trace=trace)
    values = trace.values(3)
    assert set(values) == set(trace.names)
    assert [zlib.crc32(values[n].tobytes()) for n in trace.names] == trace.crcs(3)
    assert same_bits(values[TraceName(None, "logits", None)], result.logits[3])
    assert values[TraceName(1, "expert_ids", None)].tolist() == result.experts[1][3].tolist()
    assert trace.positions == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError):
        trace.values(2)


def test_trace_crc_is_of_little_endian_bytes() -> None:
    expected = zlib.crc32(b"\x00\x00\x80\x3f")
    assert expected == colibri_sim.golden.crc32(np.array([1.0], np.float32))
    assert expected == colibri_sim.golden.crc32(np.array([1.0], ">f4"))
    assert colibri_sim.golden.crc32(np.frombuffer(b"123456789", np.uint8)) == 0xCBF43926


# --- range


def changed(name: str, change: Callable[[Any], None], tensor: str) -> Callable[[str], Stored]:
    """The oracle's weights with one tensor changed."""

    def read(wanted: str) -> Stored:
        stored = weights(name, "f32")(wanted)
        if wanted == tensor:
            stored = replace(stored, data=stored.data.copy())
            change(stored.data)
        return stored

    return read


def edited(name: str, change: Callable[[Any], None], tensor: str) -> GoldenModel:
    """The oracle with one tensor changed."""
    return GoldenModel(oracle(name).config, changed(name, change, tensor))


def huge_row(row: int) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        data[row] = np.float32(2.0**49)

    return change


@pytest.mark.parametrize(
    ("tensor", "failing", "layer", "slot"),
    [
        ("layers.0.attn.v.weight", "v", 0, None),
        ("layers.1.attn.q.weight", "q_rope", 1, None),
        ("layers.1.attn.k.weight", "k_rope", 1, None),
        ("layers.1.attn.o.weight", "attn_residual", 1, None),
        ("layers.0.ffn.up.weight", "act", 0, 0),
        ("layers.1.ffn.down.weight", "ffn_residual", 1, None),
        ("head.weight", "logits", None, None),
    ],
)
def test_range_is_exceeded_where_the_contract_checks(
    tensor: str, failing: str, layer: int | None, slot: int | None
) -> None:
    def huge(data: Any) -> None:
        data *= np.float32(2.0**49) / np.abs(data).max()

    model = edited("llama", huge, tensor)
    with pytest.raises(RangeExceeded) as caught:
        model.forward(oracle("llama").ids)
    assert (failing, layer, slot) == (caught.value.tensor, caught.value.layer, caught.value.slot)
    model.rewind(0)
    with pytest.raises(RangeExceeded) as alone:
        one_by_one(model, oracle("llama").ids)
    assert str(alone.value) == str(caught.value)


def test_norm_weights_can_exceed_the_range() -> None:
    def huge(data: Any) -> None:
        data[...] = np.float32(2.0**49.5)

    with pytest.raises(RangeExceeded, match="layer 0 attn_norm reaches"):
        edited("llama", huge, "layers.0.attn_norm.weight").forward([5])


def test_the_range_starts_at_two_to_the_fifty() -> None:
    value = np.nextafter(np.float32(2.0**50), np.float32(0))

    def put(data: Any) -> None:
        data[7, 0] = value

    assert edited("llama", put, "embed.weight").forward([7]).logits.shape == (1, 96)
    value = np.float32(2.0**50)
    with pytest.raises(RangeExceeded, match="position 0: embed"):
        edited("llama", put, "embed.weight").forward([7])


def test_a_cache_of_binary16_has_a_smaller_range() -> None:
    """v is a multiple of one embedded token's norm: scaled to just below and just at 65520."""
    case = oracle("llama")
    trace = TraceRecorder(case.config, keep=None)
    case.golden().forward([5], trace=trace)
    v = trace.values(0)[TraceName(0, "v", None)]
    at = int(np.argmax(np.abs(v)))

    def model(limit: float, kv: KvFormat) -> GoldenModel:
        def grown(data: Any) -> None:
            data[at] *= np.float32(limit / abs(float(v[at])))

        return GoldenModel(case.config, changed("llama", grown, "layers.0.attn.v.weight"), kv)

    assert model(65510, "f16").forward([5]).logits.shape == (1, 96)
    assert model(65530, "f32").forward([5]).logits.shape == (1, 96)
    with pytest.raises(RangeExceeded, match="position 0: layer 0 v reaches 65520"):
        model(65530, "f16").forward([5])


def test_the_first_failing_position_is_named_though_a_later_one_fails_sooner() -> None:
    """Position 2 cannot be embedded; position 1 fails in the logits, which a batch computes afterwards."""
    case = oracle("llama")
    alone = case.golden().forward([5, 6]).logits[1]

    def read(wanted: str) -> Stored:
        stored = weights("llama", "f32")(wanted)
        data = stored.data.copy()
        if wanted == "embed.weight":
            data[7] = np.float32(2.0**50)
        if wanted == "head.weight":
            # A row along position 1's final norm, so large that only its logit gets out of range.
            data[0] = direction * np.float32(2.0**50 / threshold)
        return replace(stored, data=data)

    trace = TraceRecorder(case.config, keep=None)
    case.golden().forward([5, 6], trace=trace)
    norms = [trace.values(p)[TraceName(None, "final_norm", None)] for p in (0, 1)]
    direction = norms[1]
    reached = [float(np.dot(n, direction)) for n in norms]
    assert reached[1] > abs(reached[0])
    threshold = (reached[1] + abs(reached[0])) / 2
    assert alone.shape == (96,)

    model = GoldenModel(case.config, read)
    with pytest.raises(RangeExceeded, match="position 1: logits"):
        model.forward([5, 6, 7])
    single = GoldenModel(case.config, read)
    single.forward([5])
    with pytest.raises(RangeExceeded, match="position 1: logits"):
        single.forward([6])
    last_only = GoldenModel(case.config, read)
    with pytest.raises(RangeExceeded, match="position 2: embed"):
        last_only.forward([5, 6, 7], last_only=True)


def test_after_range_exceeded_only_rewind_to_zero_helps() -> None:
    model = edited("llama", huge_row(7), "embed.weight")
    model.forward([5, 6])
    model._stored["embed.weight"].data[7] = np.float32(2.0**50)
    with pytest.raises(RangeExceeded):
        model.forward([7])
    with pytest.raises(ValueError, match=r"rewind\(0\) first"):
        model.forward([5])
    with pytest.raises(ValueError, match="cannot rewind"):
        model.rewind(1)
    model.rewind(0)
    assert model.forward([5]).logits.shape == (1, 96)


# --- what it asserts of itself


@pytest.mark.parametrize("bad", [-0.0, 1e-45, -1e-45, 2.0**-41, 1e-38, np.inf, -np.inf, np.nan])
def test_every_value_handed_on_is_checked(bad: float) -> None:
    with pytest.raises(ContractViolation, match=r"x\[1, 2\] has bits 0x"):
        check_snapped("x", np.array([[1, 2, 3], [0, 2.0**-40, bad]], np.float32))


@pytest.mark.parametrize(
    "method", ["norm", "residual", "scale_query", "activate", "combine", "project", "router_logits"]
)
@pytest.mark.parametrize("bad", [-0.0, 2.0**-41])
def test_an_operator_that_forgets_to_snap_is_caught(method: str, bad: float) -> None:
    def spoil(self: GoldenModel, *args: Any, **kwargs: Any) -> Any:
        out = getattr(GoldenModel, method)(self, *args, **kwargs).copy()
        out[..., 0] = bad
        return out

    case = oracle("mixtral")
    mutant = type("Mutant", (GoldenModel,), {method: spoil})
    with pytest.raises(ContractViolation, match="not snapped"):
        case.golden(kind=mutant).forward(case.ids)


def test_the_package_exports_what_it_lists() -> None:
    listed = {n: getattr(colibri_sim.golden, n) for n in colibri_sim.golden.__all__}
    assert sorted(listed) == sorted(colibri_sim.golden.__all__, key=str)
