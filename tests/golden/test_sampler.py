# SPDX-License-Identifier: Apache-2.0
"""The sampler: the generator's published numbers, the rules one by one, the distribution."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from colibri_sim.golden import Pcg32, Sampling, generate, sample
from colibri_sim.golden.functions import exp, snap
from colibri_sim.golden.sampler import running_sums

from .oracles import oracle

F32 = npt.NDArray[np.float32]
f32 = np.float32


def test_pcg32_gives_the_published_numbers() -> None:
    """First line of the demo program of O'Neill's pcg-c-basic: seed 42, stream 54."""
    rng = Pcg32(42, increment=(54 << 1) | 1)
    expected = [0xA15C02B7, 0x7B47F409, 0xBA1D3330, 0x83D2F293, 0xBFA4784B, 0xCBED606E]
    assert [rng.next() for _ in range(6)] == expected


def other_pcg32(seed: int, n: int) -> list[int]:
    """Written anew with arbitrary integers: the state after j steps in closed form, rotation by string slicing."""
    a, c, m = 6364136223846793005, 1442695040888963407, 1 << 64
    state = (((0 * a + c) + seed) * a + c) % m
    out = []
    for _ in range(n):
        word = format((((state >> 18) ^ state) >> 27) % (1 << 32), "032b")
        turn = state >> 59
        out.append(int(word[32 - turn :] + word[: 32 - turn], 2))
        state = (state * a + c) % m
    return out


@pytest.mark.parametrize("seed", [0, 1, 1234, (1 << 64) - 1, 0x0123456789ABCDEF])
def test_pcg32_is_another_implementation(seed: int) -> None:
    rng = Pcg32(seed)
    assert [rng.next() for _ in range(200)] == other_pcg32(seed, 200)


def test_running_sums_round_at_each_step() -> None:
    x = np.random.default_rng(0).random(5000).astype(np.float32)
    total, expected = f32(0), []
    for value in x:
        total = f32(total + value)
        expected.append(total)
    assert np.array_equal(np.array(expected), running_sums(x))


def slow_sample(logits: F32, temperature: float, top_k: int, top_p: float, r: int) -> int:
    """Section 8 sentence by sentence, in scalars; r is the draw."""
    inverse = f32(f32(1) / f32(temperature))
    m = f32(max(logits))
    e = [f32(exp(max(f32(snap(f32(f32(snap(f32(z - m))) * inverse))), f32(-28)))) for z in logits]
    order = sorted(range(len(e)), key=lambda i: (-e[i], i))
    k_active, p_active = 0 < top_k < len(e), f32(top_p) < 1
    candidates = order if k_active or p_active else list(range(len(e)))
    total = f32(0)
    if k_active:
        candidates = order[:top_k]
        for i in candidates:
            total = f32(total + e[i])
    else:
        for value in e:
            total = f32(total + value)
    if p_active:
        limit, running, prefix = f32(f32(top_p) * total), f32(0), []
        for i in candidates:
            running = f32(running + e[i])
            prefix.append(i)
            if running >= limit:
                break
        candidates, total = prefix, running
    u = f32(f32(r >> 8) * f32(2.0**-24))
    running = f32(0)
    for i in candidates:
        running = f32(running + e[i])
        if running > f32(u * total):
            return i
    return [i for i in candidates if e[i] > 0][-1]


class Fixed(Pcg32):
    """Draws given numbers."""

    def __init__(self, *draws: int) -> None:
        self.draws = list(draws)

    def next(self) -> int:
        return self.draws.pop(0)


@pytest.mark.parametrize("temperature", [0.0078125, 0.7, 1.0, 128.0])
@pytest.mark.parametrize(
    ("top_k", "top_p"), [(0, 1.0), (5, 1.0), (0, 0.9), (20, 0.5), (0, 0.999999), (40, 1.0), (1, 1.0)]
)
def test_sample_is_the_text(temperature: float, top_k: int, top_p: float) -> None:
    rng = np.random.default_rng(7)
    draws = [0, 0xFFFFFFFF, 0xFF, 0x100, *map(int, rng.integers(0, 1 << 32, 40))]
    for draw in draws:
        logits = snap((rng.standard_normal(40) * 4).round(1).astype(np.float32))  # rounded: equal logits occur
        expected = slow_sample(logits, temperature, top_k, top_p, draw)
        assert expected == sample(logits, temperature, top_k, top_p, Fixed(draw))


def test_greedy_takes_the_lower_id_and_draws_nothing() -> None:
    assert sample(np.array([1, 3, 3, 2], np.float32), 0.0, 0, 1.0, Fixed()) == 1


def test_equal_logits_come_in_order_of_their_ids() -> None:
    logits = np.zeros(8, np.float32)
    assert [sample(logits, 1.0, 4, 1.0, Fixed((i << 30) | 1)) for i in range(4)] == [0, 1, 2, 3]


def test_never_an_id_of_probability_zero() -> None:
    logits = np.array([0, 0, -100, -100], np.float32)
    assert sample(logits, 1.0, 0, 1.0, Fixed(0xFFFFFFFF)) == 1


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (3, 1.0), (0, 0.8)])
def test_frequencies_are_the_probabilities(top_k: int, top_p: float) -> None:
    logits = np.array([1.0, -0.5, 2.0, 0.25, 1.5, -3.0], np.float32)
    p = np.exp(logits.astype(np.float64) / 0.9)
    p /= p.sum()
    order = np.argsort(-p)
    kept = order[: top_k or 6]
    if top_p < 1:
        kept = order[: int(np.searchsorted(np.cumsum(p[order]), top_p)) + 1]
    expected = np.zeros(6)
    expected[kept] = p[kept] / p[kept].sum()
    rng, n = Pcg32(99), 3_000
    counts = np.bincount([sample(logits, 0.9, top_k, top_p, rng) for _ in range(n)], minlength=6)
    for got, want in zip(counts, expected, strict=True):
        assert abs(got - n * want) <= 5 * math.sqrt(n * want * (1 - want))


def test_generate_is_forward_and_sample() -> None:
    case = oracle("mixtral")
    sampling = Sampling(temperature=0.8, top_k=20, top_p=0.9, seed=5)
    got = list(generate(case.golden("q8"), case.ids[:6], 10, sampling))
    model, rng, ids = case.golden("q8"), Pcg32(5), list(case.ids[:6])
    for _ in range(10):
        model.rewind(0)
        ids.append(sample(model.forward(ids).logits[-1], 0.8, 20, 0.9, rng))
    assert got == ids[6:]
    assert got == list(generate(case.golden("q8"), case.ids[:6], 10, sampling))
    assert got != list(generate(case.golden("q8"), case.ids[:6], 10, Sampling(0.8, 20, 0.9, seed=6)))


def test_generate_ends_with_eos() -> None:
    case = oracle("mixtral")
    greedy = list(generate(case.golden(), [1], 8, Sampling()))
    end = greedy[3]
    assert greedy[: greedy.index(end) + 1] == list(generate(case.golden(), [1], 8, Sampling(), {end}))


def test_generate_ends_with_the_context() -> None:
    case = oracle("mixtral")
    model = case.golden()
    ids = (case.ids * 3)[: case.config.max_seq - 2]
    assert len(list(generate(model, ids, 50, Sampling()))) == 3
    assert model.position == case.config.max_seq


@pytest.mark.parametrize(
    "wrong", [{"temperature": 0.001}, {"temperature": 200.0}, {"top_p": 0.0}, {"top_p": 1e-60}, {"top_p": 1.5}]
)
def test_sampling_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"temperature is|top_k >= 0"):
        Sampling(**wrong)  # type: ignore[arg-type]  # floats by name
