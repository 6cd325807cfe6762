# SPDX-License-Identifier: Apache-2.0
"""Every status, and that an error changes nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from engine_tiny import Engine, Scrub, stages, statuses, tiny_of

S = statuses()
NULL = ctypes.c_void_p(None)
WORDS = ["magic", "position", "seq_len", "done", "stage", "layer", "slot", "unit", "status", "logits", "ids_hash"]
ATTN_NORM, ROPE, ATTN_RESIDUAL, GATE, ACT, FFN_RESIDUAL = (
    stages()[name] for name in ("ATTN_NORM", "ROPE", "ATTN_RESIDUAL", "GATE", "ACT", "FFN_RESIDUAL")
)
HEADER = {name: i for i, name in enumerate(WORDS)}


@pytest.fixture
def engine(engine_of: Callable[..., Engine]) -> Engine:
    return engine_of("moe_f32")


def raw_step(engine: Engine, function: str = "colibri_step", **changed: object) -> int:
    ids = np.array([1, 2, 3], np.int32)
    arguments = {
        "model": ctypes.byref(engine.model), "state": engine.state_at, "ids": ctypes.c_void_p(ids.ctypes.data), "n": 3,
        "logits": ctypes.c_void_p(engine.logits.ctypes.data), "last": NULL if function == "colibri_forward" else 0,
    }  # fmt: skip
    return getattr(engine.lib, function)(*(arguments | changed).values())


@pytest.mark.parametrize("function", ["colibri_step", "colibri_forward"])
def test_wrong_arguments_are_a_status_each_and_change_nothing(engine: Engine, function: str) -> None:
    assert engine.forward([4, 5]) == 0
    before = engine.snapshot()
    foreign = Engine(engine.tiny, engine.lib)
    foreign.header[0] ^= 1
    blank = type(engine.model)()
    bad_ids = [np.array(x, np.int32) for x in ([1, 37, 3], [1, 2, -1])]
    cases: list[tuple[str, dict[str, object]]] = [
        ("ERR_NULL", {"model": NULL}),
        ("ERR_NULL", {"state": NULL}),
        ("ERR_NULL", {"ids": NULL}),
        ("ERR_MODEL", {"model": ctypes.byref(blank)}),
        ("ERR_STATE_ALIGN", {"state": ctypes.c_void_p(engine.state.ctypes.data + 4)}),
        ("ERR_BUFFER_ALIGN", {"logits": ctypes.c_void_p(engine.logits.ctypes.data + 1)}),
        ("ERR_BUFFER_ALIGN", {"ids": ctypes.c_void_p(bad_ids[0].ctypes.data + 2)}),
        ("ERR_STATE", {"state": foreign.state_at}),
        ("ERR_SEQ_LEN", {"n": 0}),
        ("ERR_SEQ_LEN", {"n": -(2**31)}),
        ("ERR_CONTEXT_FULL", {"n": 11}),
        ("ERR_CONTEXT_FULL", {"n": 2**31 - 1}),
        *(("ERR_TOKEN_ID", {"ids": ctypes.c_void_p(x.ctypes.data)}) for x in bad_ids),
    ]
    for name, changed in cases:
        assert S[name] == raw_step(engine, function, **changed), (name, changed)
        assert before == engine.snapshot(), (name, changed)
    assert raw_step(engine, function) >= 0


def test_the_last_position_can_be_used_and_not_one_more(engine: Engine) -> None:
    assert engine.forward([1] * 12) == 0
    before = engine.snapshot()
    assert S["ERR_CONTEXT_FULL"] == engine.forward([1])
    assert before == engine.snapshot()
    assert engine.position == 12


def test_a_pending_call_accepts_only_its_own_arguments(engine: Engine) -> None:
    assert engine.step([1, 2, 3], 500) == 1
    before = engine.snapshot()
    for call in (
        lambda: engine.step([1, 2], 500),
        lambda: engine.step([1, 2, 4], 500),
        lambda: engine.step([1, 2, 3], 500, logits=False),
        lambda: engine.forward([1]),
    ):
        assert S["ERR_PENDING"] == call()
        assert before == engine.snapshot()
    assert engine.forward([1, 2, 3]) == 0
    assert engine.position == 3


def test_rewind_refuses_what_is_not_there_and_cancels_a_pending_call(engine: Engine) -> None:
    assert engine.forward([1, 2, 3]) == 0
    before = engine.snapshot()
    assert S["ERR_POSITION"] == engine.rewind(4)
    assert S["ERR_POSITION"] == engine.rewind(-1)
    assert before == engine.snapshot()
    assert engine.step([9, 9], 1) == 1
    assert engine.rewind(3) == 0
    assert engine.forward([9], logits=False) == 0
    assert S["ERR_NULL"] == engine.lib.colibri_rewind(NULL, 0)
    assert S["ERR_NULL"] == engine.lib.colibri_position(NULL)


@pytest.mark.parametrize(
    ("word", "value"),
    [("position", 13), ("position", 11), ("stage", len(stages())), ("stage", 2**31),
     ("stage", stages()["HEAD"]), ("stage", stages()["CONV"]), ("layer", 2), ("slot", 2), ("unit", 24),
     ("unit", 2**32 - 1), ("seq_len", 0), ("seq_len", 2**32 - 1), ("done", 3), ("done", 2**32 - 1), ("logits", 2)],
)  # fmt: skip
def test_corrupt_indices_are_found_before_they_are_used(engine: Engine, word: str, value: int) -> None:
    assert engine.step([1, 2, 3], 400) == 1
    assert engine.header[HEADER["stage"]] == stages()["Q"]
    engine.header[HEADER[word]] = value
    before = engine.snapshot()
    assert S["ERR_STATE_CORRUPT"] == engine.step([1, 2, 3], 400)
    assert S["ERR_STATE_CORRUPT"] == engine.rewind(0)
    assert S["ERR_STATE_CORRUPT"] == engine.position
    assert before == engine.snapshot()
    assert engine.state_init() == 0
    assert engine.forward([1]) == 0


def test_a_corrupt_expert_index_is_found_before_it_is_used(engine: Engine) -> None:
    engine.run_to([1], GATE)
    engine.state[engine.tiny.buffers["expert_ids"]].view(np.int32)[0] = 5
    assert S["ERR_STATE_CORRUPT"] == engine.step([1], 0)


# The stage that must notice, and the element that is too large before it runs.
@pytest.mark.parametrize(
    ("stage", "buffer", "index"),
    [
        (ROPE, "q", 5),
        (ROPE, "scratch", 3),  # k
        (ROPE, "scratch", 16 + 11),  # v
        (ATTN_NORM, "x", 19),  # through the norm's output: every other element becomes small
        (ATTN_RESIDUAL, "scratch", 16 + 19),
        (FFN_RESIDUAL, "q", 19),
        (ACT, "scratch", 12),
    ],
)
def test_each_stage_checks_what_it_completes(engine: Engine, stage: int, buffer: str, index: int) -> None:
    engine.run_to([1, 2], stage)
    values = engine.floats(buffer)
    if stage == ATTN_NORM:
        layer_norm = engine.tiny.layer_rows[0]["attn_norm"]
        engine.image[layer_norm : layer_norm + 80].view(np.float32)[index] = 2.0**49.9
        values[:20] = 0
        values[index] = 1
    else:
        values[index] = 2.0**60
    if stage == ACT:
        values[16 + index] = 1
    assert S["ERR_RANGE"] == engine.step([1, 2], 0)
    assert int(engine.header[HEADER["stage"]]) == stage


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2.0**60])
@pytest.mark.parametrize("where", ["EMBEDDING", "FINAL_NORM", "HEAD", "0.V", "1.ffn_norm", "1.O"])
def test_damaged_weights_end_with_range_and_zero_logits(engine: Engine, where: str, value: float) -> None:
    if "." in where:
        layer, name = where.split(".")
        offset = engine.tiny.layer_rows[int(layer)][name]
    else:
        offset = engine.tiny.offsets[where]
    engine.image[offset : offset + 4 * 16].view(np.float32)[:] = value
    assert S["ERR_RANGE"] == engine.forward([0])
    assert not engine.logits.view(np.uint32).any()
    before = engine.snapshot()
    assert S["ERR_STATE_FAILED"] == engine.forward([0])
    assert S["ERR_STATE_FAILED"] == engine.rewind(0)
    assert before == engine.snapshot()
    engine.image[:] = np.frombuffer(engine.tiny.image, np.uint8)
    assert engine.state_init() == 0
    assert engine.forward([0]) == 0


def test_init_has_a_status_for_each_field(engine: Engine) -> None:
    good = engine.image.copy()
    before = bytes(engine.model)

    def init(flags: int = 0, at: int = 0, n_bytes: int | None = None) -> int:
        return engine.lib.colibri_init(ctypes.byref(engine.model), ctypes.c_void_p(engine.image.ctypes.data + at),
                                       ctypes.c_size_t(len(good) if n_bytes is None else n_bytes), flags)  # fmt: skip

    n_bytes = ctypes.c_size_t(len(good))
    assert S["ERR_NULL"] == engine.lib.colibri_init(None, ctypes.c_void_p(engine.image.ctypes.data), n_bytes, 0)
    assert S["ERR_NULL"] == engine.lib.colibri_init(ctypes.byref(engine.model), None, n_bytes, 0)
    assert S["ERR_IMAGE_ALIGN"] == init(at=32)
    assert S["ERR_FLAGS"] == init(flags=2)
    assert S["ERR_IMAGE_BYTES"] == init(n_bytes=len(good) - 1)
    assert S["ERR_IMAGE_BYTES"] == init(n_bytes=len(good) + 1)
    for offset, name in [(0, "MAGIC"), (7, "MAGIC"), (8, "FORMAT_VERSION"), (13, "HEADER_BYTES"), (16, "HEADER_BYTES"),
                         (23, "HEADER_BYTES"), (24, "CONFIG_HASH"), (39, "CONFIG_HASH"), (40, "KERNEL_LAYOUT")]:  # fmt: skip
        engine.image[:] = good
        engine.image[offset] ^= 0x80
        assert S[f"ERR_{name}"] == init(), offset
    for offset, name in [(44, "HEADER_CRC"), (200, "HEADER_CRC"), (255, "HEADER_CRC"), (4096, "WEIGHTS_CRC"),
                         (len(good) - 1, "WEIGHTS_CRC")]:  # fmt: skip
        engine.image[:] = good
        engine.image[offset] ^= 0x01
        assert init() == 0
        assert S[f"ERR_{name}"] == init(flags=1), offset
    engine.image[:] = good
    assert init(flags=1) == 0
    assert before == bytes(engine.model)


def test_state_init_checks_its_arguments_and_zeroes_the_rest(engine: Engine) -> None:
    blank = type(engine.model)()
    before = engine.snapshot()
    assert S["ERR_NULL"] == engine.lib.colibri_state_init(NULL, ctypes.byref(engine.model))
    assert S["ERR_NULL"] == engine.lib.colibri_state_init(engine.state_at, NULL)
    assert S["ERR_MODEL"] == engine.lib.colibri_state_init(engine.state_at, ctypes.byref(blank))
    misaligned = ctypes.c_void_p(engine.state.ctypes.data + 8)
    assert S["ERR_STATE_ALIGN"] == engine.lib.colibri_state_init(misaligned, ctypes.byref(engine.model))
    assert before == engine.snapshot()
    engine.state[:] = 0xA5
    assert engine.state_init() == 0
    assert before == engine.snapshot()


def test_scrub_reads_every_byte_in_any_slices(engine: Engine) -> None:
    cursor = Scrub()
    assert S["ERR_CURSOR"] == engine.lib.colibri_scrub(ctypes.byref(engine.model), ctypes.byref(cursor), 10)
    assert engine.lib.colibri_scrub_init(ctypes.byref(cursor)) == 0
    for n_bytes, damage in ((977, None), (2**32 - 1, None), (1000, 4096), (1000, len(engine.image) - 1)):
        if damage is not None:
            engine.image[damage] ^= 4
        arguments = ctypes.byref(engine.model), ctypes.byref(cursor), ctypes.c_uint32(n_bytes)
        n_slices = 1
        while (status := engine.lib.colibri_scrub(*arguments)) == 1:
            n_slices += 1
        assert (0 if damage is None else S["ERR_WEIGHTS_CRC"]) == status
        assert -(-(len(engine.image) - 4096) // n_bytes) == n_slices
        if damage is not None:
            engine.image[damage] ^= 4


def test_the_state_of_another_model_is_refused(engine: Engine, engine_of: Callable[..., Engine]) -> None:
    other = engine_of("moe_q8")
    engine.header[0] = other.header[0]
    assert S["ERR_STATE"] == engine.forward([1])


@pytest.mark.parametrize("name", ["moe_f32", "moe_q8", "moe_q8_group", "moe_q4", "moe_16", "dense"])
def test_the_planned_state_size_is_the_engines(name: str, engine_of: Callable[..., Engine]) -> None:
    assert tiny_of(name).state_bytes == engine_of(name).lib.test_state_bytes()


def test_status_values_are_distinct_and_named() -> None:
    assert len(set(S.values())) == len(S) == 33
