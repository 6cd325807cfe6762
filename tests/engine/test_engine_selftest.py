# SPDX-License-Identifier: Apache-2.0
"""colibri_selftest: its statuses, what it leaves behind, and that no vector and no fault passes.

That the vector is the golden model's answer is shown in tests/verify/test_verify_selftest.py; here the engine's own logits stand
for it.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from engine_tiny import SELFTEST_POSITIONS, Engine, statuses

S = statuses()
NULL = ctypes.c_void_p(None)
IDS = (3, 36, 0, 17, 5, 5, 29, 11)


def words(engine: Engine) -> np.ndarray:
    """The vector in the image: ids, then CRCs."""
    at = engine.tiny.offsets["SELFTEST"]
    return engine.image[at : at + 8 * SELFTEST_POSITIONS].view(np.uint32)


def write(engine: Engine, n: int = SELFTEST_POSITIONS) -> None:
    """A vector of n positions that this engine passes."""
    vector = words(engine)
    vector[:SELFTEST_POSITIONS] = np.array([*IDS[:n], *[-1] * (SELFTEST_POSITIONS - n)], np.int32).view(np.uint32)
    vector[SELFTEST_POSITIONS:] = 0
    assert engine.state_init() == 0
    for i in range(n):
        assert engine.forward([IDS[i]]) == 0
        vector[SELFTEST_POSITIONS + i] = zlib.crc32(engine.logits.tobytes())
    assert engine.state_init() == 0


def selftest(engine: Engine, **changed: object) -> int:
    arguments = {
        "model": ctypes.byref(engine.model),
        "state": engine.state_at,
        "logits": ctypes.c_void_p(engine.logits.ctypes.data),
    }
    return int(engine.lib.colibri_selftest(*(arguments | changed).values()))


@pytest.fixture(params=["moe_f32", "moe_q8", "dense"])
def engine(request: pytest.FixtureRequest, engine_of: Callable[..., Engine]) -> Engine:
    return engine_of(request.param)


@pytest.mark.parametrize("n", range(1, SELFTEST_POSITIONS + 1))
def test_a_right_vector_passes_and_leaves_an_empty_sequence(engine: Engine, n: int) -> None:
    write(engine, n)
    empty = engine.state.tobytes()
    engine.state[:] = 0xA5  # a state of any content
    assert selftest(engine) == 0
    assert engine.state.tobytes() == empty
    assert engine.forward([1] * engine.case.max_seq) == 0


@pytest.mark.parametrize("position", range(SELFTEST_POSITIONS))
def test_one_wrong_bit_at_any_position_fails_and_leaves_an_empty_sequence(engine: Engine, position: int) -> None:
    write(engine)
    empty = engine.state.tobytes()
    words(engine)[SELFTEST_POSITIONS + position] ^= 1 << 3 * position
    assert S["ERR_SELFTEST"] == selftest(engine)
    assert engine.state.tobytes() == empty


def test_another_id_fails(engine: Engine) -> None:
    write(engine)
    words(engine)[4] ^= 1
    assert S["ERR_SELFTEST"] == selftest(engine)


@pytest.mark.parametrize("first", [-1, 37, -2, 2**31 - 1])
def test_no_vector_and_no_token_are_no_pass(engine: Engine, first: int) -> None:
    write(engine)
    words(engine)[0] = first & 0xFFFFFFFF
    assert S["ERR_SELFTEST"] == selftest(engine)


def test_a_value_out_of_range_is_the_same_status_and_an_empty_sequence(engine: Engine) -> None:
    write(engine)
    empty = engine.state.tobytes()
    at = engine.tiny.offsets["FINAL_NORM"]
    engine.image[at : at + 4].view(np.float32)[0] = np.inf
    assert S["ERR_SELFTEST"] == selftest(engine)
    assert engine.state.tobytes() == empty


def test_wrong_arguments_are_a_status_each_and_change_nothing(engine: Engine) -> None:
    write(engine)
    assert engine.forward([4, 5]) == 0
    before = engine.snapshot()
    blank = type(engine.model)()
    for name, changed in [
        ("ERR_NULL", {"model": NULL}),
        ("ERR_NULL", {"state": NULL}),
        ("ERR_NULL", {"logits": NULL}),
        ("ERR_MODEL", {"model": ctypes.byref(blank)}),
        ("ERR_STATE_ALIGN", {"state": ctypes.c_void_p(engine.state.ctypes.data + 4)}),
        ("ERR_BUFFER_ALIGN", {"logits": ctypes.c_void_p(engine.logits.ctypes.data + 2)}),
    ]:
        assert S[name] == selftest(engine, **changed), changed
        assert before == engine.snapshot(), changed
    assert selftest(engine) == 0
