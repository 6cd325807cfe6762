# SPDX-License-Identifier: Apache-2.0
"""The operations on vectors, element by element from the text of NUMERICS sections 4 and 7."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from colibri.axes import Norm
from colibri_sim.golden import functions as f
from colibri_sim.golden import vectors as v
from colibri_sim.golden.fma import fma

F32 = npt.NDArray[np.float32]


def scalar_dot8(a: F32, b: F32) -> np.float32:
    """Section 4 letter by letter, one element at a time."""
    acc = [np.float32(0)] * 8
    for i in range(len(a)):
        acc[i % 8] = np.float32(fma(a[i], b[i], acc[i % 8]))
    s = [np.float32(acc[j] + acc[j + 4]) for j in range(4)]
    t = [np.float32(s[0] + s[2]), np.float32(s[1] + s[3])]
    return np.float32(t[0] + t[1])


@pytest.mark.parametrize("n", [1, 7, 8, 9, 31, 48, 72])
def test_dot8_is_the_eight_lanes_of_the_contract(n: int) -> None:
    rng = np.random.default_rng(n)
    W, x = (f.snap(rng.standard_normal((r, n)).astype(np.float32)) for r in (5, 3))
    expected = np.array([[scalar_dot8(w, v) for w in W] for v in x])
    assert np.array_equal(expected.view(np.uint32), v.dot8_matrix(W, x).view(np.uint32))
    assert np.array_equal(expected[0].view(np.uint32), v.dot8(W, x[:1]).view(np.uint32))


def test_dot8_matrix_does_not_depend_on_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    W, x = (rng.standard_normal((r, 40)).astype(np.float32) for r in (23, 11))
    whole = v.dot8_matrix(W, x)
    monkeypatch.setattr(v, "_CHUNK_ELEMS", 120)
    assert np.array_equal(whole, v.dot8_matrix(W, x))


def test_sum_rising_is_one_addition_after_another() -> None:
    x = np.random.default_rng(0).standard_normal((2, 1000)).astype(np.float32)
    total = np.float32(0)
    for value in x[1]:
        total = np.float32(total + value)
    assert v.sum_rising(x)[1] == total


def test_weighted_sum_is_a_chain_of_fma() -> None:
    rng = np.random.default_rng(4)
    weights, values = rng.random(9).astype(np.float32), rng.standard_normal((9, 5)).astype(np.float32)
    o = np.zeros(5, np.float32)
    for t in range(9):
        o = fma(weights[t], values[t], o)
    assert np.array_equal(f.snap(o), v.weighted_sum(weights, values))


def scalar_norm(norm: Norm, x: F32, weight: F32, bias: F32) -> list[F32]:
    """Section 7.2 letter by letter."""
    rn = np.float32(1) / np.float32(len(x))
    if norm.kind == "layer":
        mean = f.snap(np.float32(f.snap(scalar_dot8(x, np.ones_like(x))) * rn))
        x = np.array([f.snap(np.float32(xi - mean)) for xi in x])
    d = f.snap(scalar_dot8(x, x))
    inv = np.float32(1) / np.sqrt(np.float32(np.float32(d * rn) + np.float32(norm.eps)))
    y = [f.snap(np.float32(xi * inv)) for xi in x]
    if not norm.weight:
        return y
    if not norm.bias:
        return [f.snap(np.float32(yi * wi)) for yi, wi in zip(y, weight, strict=True)]
    return [f.snap(fma(yi, wi, bi)) for yi, wi, bi in zip(y, weight, bias, strict=True)]


NORMS = [
    Norm(1e-5, kind, weight, bias) for kind in ("rms", "layer") for weight, bias in ((0, 0), (1, 0), (1, 1))
]  # fmt: skip


@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_norm_letter_by_letter(norm: Norm) -> None:
    rng = np.random.default_rng(5)
    x, weight, bias = (rng.standard_normal(12).astype(np.float32) for _ in range(3))
    y = v.rms(v.centred(x) if norm.kind == "layer" else x, norm.eps)
    if norm.weight:
        y = v.scaled(y, weight, bias if norm.bias else None)
    assert np.array_equal(np.array(scalar_norm(norm, x, weight, bias)), y)


@pytest.mark.parametrize("sink", [None, -3.0, 4.0])
def test_softmax_letter_by_letter(sink: float | None) -> None:
    z = f.snap(np.random.default_rng(6).standard_normal(9).astype(np.float32) * np.float32(12))
    m = max([*z, *([] if sink is None else [np.float32(sink)])])
    e = [f.exp_clamped(f.snap(np.float32(zi - m))) for zi in z]
    total = np.float32(0)
    for ei in [*e, *([] if sink is None else [f.exp_clamped(f.snap(np.float32(np.float32(sink) - m)))])]:
        total = np.float32(total + ei)
    expected = np.array([f.snap(np.float32(ei / total)) for ei in e])
    got = v.softmax(z[None], sink=None if sink is None else np.array([sink], np.float32))
    assert np.array_equal(expected, got[0])


def test_softmax_ignores_what_is_not_valid() -> None:
    z = np.array([[1.0, 5.0, 2.0, 9.0]], np.float32)
    valid = np.array([[True, False, True, False]])
    part = v.softmax(z[:, [0, 2]])
    assert v.softmax(z, valid)[0].tolist() == [part[0, 0], 0.0, part[0, 1], 0.0]
