# SPDX-License-Identifier: Apache-2.0
"""Matrix products of each format, element by element from the text of NUMERICS section 5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from colibri.model import Tensor
from colibri.quantise import Stored, parse_format, store
from colibri_sim.golden.fma import fma
from colibri_sim.golden.functions import snap
from colibri_sim.golden.products import matmul, quantise

from .test_vectors import scalar_dot8

F32 = npt.NDArray[np.float32]
f32 = np.float32
FORMATS = ["f32", "bf16", "f16", "q8", "q8:32", "q8:64", "q8:128", "q4", "q4:64", "q4:128", "q4:row"]


def stored(values: F32, quant: str) -> Stored:
    return store(Tensor("w", values.shape, "f32", str(Path("w")), values.copy), parse_format(quant))


def scalar_quantise(x: F32) -> tuple[list[int], np.float32]:
    amax = f32(max(abs(float(v)) for v in x))
    if amax < f32(2.0**-33):
        return [0] * len(x), f32(0)
    inverse = f32(f32(127) / amax)
    return [int(max(-127, min(127, np.rint(f32(v * inverse))))) for v in x], f32(amax / f32(127))


def scalar_product(w: Stored, row: int, x: F32) -> np.float32:
    """One element of y = W x, in Python integers and float32 scalars."""
    if not w.format.is_integer:
        return f32(snap(scalar_dot8(w.values()[row], x)))
    assert w.scales is not None
    group = w.format.group or w.cols
    q = [int(v) for v in w.data[row]]
    if w.format.kind == "q8" and w.format.group:
        y = f32(0)
        for g, start in enumerate(range(0, w.cols, group)):
            xq, xs = scalar_quantise(x[start : start + group])
            acc = sum(a * b for a, b in zip(q[start : start + group], xq, strict=True))
            y = f32(fma(f32(acc), f32(w.scales[row, g] * xs), y))
        return f32(snap(y))
    xq, xs = scalar_quantise(x)
    if w.format.kind == "q4":
        assert w.multipliers is not None
        q = [value * int(w.multipliers[row, i // group]) for i, value in enumerate(q)]
    acc = sum(a * b for a, b in zip(q, xq, strict=True))
    return f32(snap(f32(np.array([acc], np.int32).astype(np.float32)[0] * f32(w.scales[row, 0] * xs))))


@pytest.mark.parametrize("quant", FORMATS)
@pytest.mark.parametrize("cols", [1, 8, 33, 72, 150])
def test_matmul_is_the_text(quant: str, cols: int) -> None:
    rng = np.random.default_rng(cols)
    values = rng.standard_normal((6, cols)).astype(np.float32)
    values[2] = 0
    values[3] *= f32(1e-9)
    x = snap(rng.standard_normal((4, cols)).astype(np.float32) * f32(3))
    x[1] = 0
    x[2] = snap(x[2] * f32(2.0**-34))
    w = stored(values, quant)
    expected = np.array([[scalar_product(w, r, v) for r in range(6)] for v in x])
    assert np.array_equal(expected.view(np.uint32), matmul(w, x).view(np.uint32))


@pytest.mark.parametrize("quant", ["q8", "q4"])
def test_the_largest_accumulators_are_exact(quant: str) -> None:
    cols = 8192
    signs = np.where(np.random.default_rng(0).random(cols) < 0.001, -1, 1).astype(np.float32)
    w = stored(np.stack([signs, np.abs(signs)]), quant)
    x = np.ones((1, cols), np.float32)
    expected = [[scalar_product(w, r, x[0]) for r in range(2)]]
    assert np.array_equal(np.array(expected), matmul(w, x))


def test_quantised_vector_with_a_zero_group() -> None:
    x = np.zeros((1, 40), np.float32)
    x[0, 32:] = [2, -2, 1, 0.5, 0, 0, 0, -1]
    got = quantise(x, 32)
    assert got.scales.tolist() == [[0.0, float(f32(2) / f32(127))]]
    assert got.q[0, 32:].tolist() == [127, -127, 64, 32, 0, 0, 0, -64]
    assert not got.q[0, :32].any()


@pytest.mark.parametrize(("amax", "zero"), [(2.0**-33, False), (float(np.nextafter(f32(2.0**-33), f32(0))), True)])
def test_the_smallest_vector_that_is_not_zero(amax: float, zero: bool) -> None:
    got = quantise(np.array([[amax, 0.0]], np.float32))
    assert (got.scales[0, 0] == 0) == zero
    assert got.q[0, 0] == (0 if zero else 127)


def test_values_reads_back() -> None:
    x = np.array([[1.0, -0.5, 0.0, 0.25]], np.float32)
    step = f32(1) / f32(127)
    assert quantise(x).values().tolist() == [[float(f32(n) * step) for n in (127, -64, 0, 32)]]
