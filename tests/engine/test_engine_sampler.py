# SPDX-License-Identifier: Apache-2.0
"""The sampler against docs/NUMERICS.md, section 8, written out with a sort."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from engine_float import F, snap
from engine_tiny import Engine, Rng, Sampling, statuses

S = statuses()
MASK = 2**64 - 1


class Pcg32:
    def __init__(self, seed: int) -> None:
        self.state = 0
        self.next()
        self.state = (self.state + seed) & MASK
        self.next()

    def next(self) -> int:
        old = self.state
        self.state = (old * 6364136223846793005 + 1442695040888963407) & MASK
        x = (((old >> 18) ^ old) >> 27) & 0xFFFFFFFF
        rot = old >> 59
        return (x >> rot | x << (-rot & 31)) & 0xFFFFFFFF


def expected(lib: ctypes.CDLL, z: np.ndarray, t: float, top_k: int, top_p: float, rng: Pcg32) -> int:
    """Return the id; exp is the engine's, tested elsewhere."""
    if t == 0:
        return int(z.argmax())
    inv = F(1) / F(t)
    e = [F(lib.test_exp(ctypes.c_float(snap(snap(v - z.max()) * inv)))) for v in z]
    order = sorted(range(len(e)), key=lambda i: (-e[i], i))
    active_k, active_p = 0 < top_k < len(e), top_p < 1
    candidates = order[:top_k] if active_k else list(range(len(e)))
    total = F(0)
    for i in candidates:
        total = F(total + e[i])
    if active_p:
        wanted, total = F(F(top_p) * total), F(0)
        chosen: list[int] = []
        for i in candidates if active_k else order:
            chosen.append(i)
            total = F(total + e[i])
            if total >= wanted:
                break
        candidates = chosen
    threshold = F(F(F(rng.next() >> 8) * F(2.0**-24)) * total)
    running = F(0)
    for i in candidates:
        running = F(running + e[i])
        if running > threshold:
            return i
    return [i for i in candidates if e[i] > 0][-1]


def sample(engine: Engine, z: np.ndarray, t: float, top_k: int, top_p: float, rng: Rng | None) -> int:
    return engine.lib.colibri_sample(ctypes.c_void_p(z.ctypes.data), ctypes.byref(Sampling(t, top_k, top_p)),
                                     ctypes.byref(rng) if rng is not None else None)  # fmt: skip


@pytest.mark.parametrize("ties", [False, True])
def test_every_combination_draws_what_the_contract_says(ties: bool, engine_of: Callable[..., Engine]) -> None:
    engine = engine_of("moe_f32")
    rng = np.random.default_rng(5)
    for trial in range(1500):
        seed = int(rng.integers(0, 2**63))
        theirs, ours = Rng(), Pcg32(seed)
        assert engine.lib.colibri_rng_seed(ctypes.byref(theirs), ctypes.c_uint64(seed)) == 0
        z = (rng.integers(-3, 4, engine.case.vocab) if ties else rng.standard_normal(engine.case.vocab) * 5).astype(F)
        t = float(F(rng.choice([0, 2.0**-7, 0.3, 1, 1.7, 128])))
        top_k, top_p = (
            int(rng.choice([0, 1, 2, 5, 36, 37, 1000])),
            float(F(rng.choice([1e-30, 1e-3, 0.3, 0.9, 0.999999, 1]))),
        )
        want = expected(engine.lib, z, t, top_k, top_p, ours)
        logits = z.copy()
        assert want == sample(engine, logits, t, top_k, top_p, theirs), (trial, t, top_k, top_p)
        assert ours.state == theirs.state
        assert t != 0 or logits.tobytes() == z.tobytes()


def test_the_generator_is_pcg32(engine_of: Callable[..., Engine]) -> None:
    """The sequence of O'Neill's pcg32_srandom(42, 54) has another increment: this is the default increment's."""
    theirs = Rng()
    assert engine_of("moe_f32").lib.colibri_rng_seed(ctypes.byref(theirs), ctypes.c_uint64(42)) == 0
    assert Pcg32(42).state == theirs.state


def test_frequencies_follow_the_probabilities(engine_of: Callable[..., Engine]) -> None:
    engine = engine_of("moe_f32")
    z = np.full(engine.case.vocab, -20, F)
    z[[3, 30]] = np.log([0.25, 0.75]).astype(F)
    rng = Rng()
    assert engine.lib.colibri_rng_seed(ctypes.byref(rng), ctypes.c_uint64(1)) == 0
    drawn = [sample(engine, z.copy(), 1, 0, 1, rng) for _ in range(4000)]
    assert abs(drawn.count(3) / 4000 - 0.25) < 0.03
    assert drawn.count(3) + drawn.count(30) == 4000


def test_the_running_sum_must_exceed_the_threshold(engine_of: Callable[..., Engine]) -> None:
    """Two candidates of e = 1: u = 0 takes the first, u = 1/2 the second, because 1 does not exceed 1."""
    engine = engine_of("moe_f32")
    z = np.full(engine.case.vocab, -100, F)
    z[[3, 30]] = 0
    for state, want in ((0, 3), (1 << 58 | 1 << 40, 30)):  # the next numbers are 0 and 2**31
        for top_k, top_p in ((0, 1), (5, 1), (0, 0.99)):
            assert want == sample(engine, z.copy(), 1, top_k, top_p, Rng(state))


def test_refused_arguments_change_nothing(engine_of: Callable[..., Engine]) -> None:
    engine = engine_of("moe_f32")
    z = np.random.default_rng(1).standard_normal(engine.case.vocab).astype(F)
    rng = Rng(77)
    before = z.tobytes()
    nan = float("nan")
    for t, k, p in [
        (-1, 0, 1),
        (0.007, 0, 1),
        (129, 0, 1),
        (nan, 0, 1),
        (1, -1, 1),
        (1, 0, 0),
        (1, 0, -0.0),
        (0, 0, 0),
        (1, 0, -0.5),
        (1, 0, 1.5),
        (1, 0, nan),
    ]:
        assert S["ERR_SAMPLING"] == sample(engine, z, t, k, p, rng)
    assert S["ERR_NULL"] == sample(engine, z, 1, 0, 1, None)
    good = ctypes.byref(Sampling(1, 0, 1))
    assert S["ERR_NULL"] == engine.lib.colibri_sample(None, good, ctypes.byref(rng))
    assert S["ERR_NULL"] == engine.lib.colibri_sample(ctypes.c_void_p(z.ctypes.data), None, ctypes.byref(rng))
    assert S["ERR_NULL"] == engine.lib.colibri_rng_seed(None, ctypes.c_uint64(1))
    odd = ctypes.c_void_p(z.ctypes.data + 2)
    assert S["ERR_BUFFER_ALIGN"] == engine.lib.colibri_sample(odd, good, ctypes.byref(rng))
    assert (before, 77) == (z.tobytes(), rng.state)
    for bad in (nan, float("inf"), 2.0**50):
        z[5] = bad
        before = z.tobytes()
        assert S["ERR_RANGE"] == sample(engine, z, 0, 0, 1, rng)
        assert S["ERR_RANGE"] == sample(engine, z, 1, 0, 1, rng)
        assert (before, 77) == (z.tobytes(), rng.state)


def test_greedy_takes_the_lowest_of_equal_logits_and_no_generator(engine_of: Callable[..., Engine]) -> None:
    engine = engine_of("moe_f32")
    z = np.full(engine.case.vocab, -3, F)
    z[[9, 4, 30]] = -1
    assert sample(engine, z, 0, 0, 1, None) == 4
    assert sample(engine, z, -0.0, 0, 1, None) == 4


@pytest.mark.parametrize("mxcsr", [0x9FC0, 0x5F80])
def test_the_callers_control_register_changes_nothing(mxcsr: int, engine_of: Callable[..., Engine]) -> None:
    engine = engine_of("moe_f32")
    z = np.random.default_rng(2).standard_normal(engine.case.vocab).astype(F)
    plain, other = z.copy(), z.copy()
    a, b, control = Rng(3), Rng(3), ctypes.c_uint32(mxcsr)
    sampling = Sampling(0.7, 9, 0.8)
    want = sample(engine, plain, 0.7, 9, 0.8, a)
    got = engine.lib.test_sample_under(ctypes.byref(control), ctypes.c_void_p(other.ctypes.data), ctypes.byref(sampling),
                                       ctypes.byref(b))  # fmt: skip
    assert (want, plain.tobytes(), mxcsr) == (got, other.tobytes(), control.value)
