# SPDX-License-Identifier: Apache-2.0
"""The functions of the contract over their domains against float64, and against 40-digit values."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from colibri_sim.golden import functions as f

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
SNAP = 2.0**-40
STRIDE = 199  # of the bit patterns: prime, so that all low bits occur

# function, low, high, largest error in units of the last place, largest absolute error. Measured over every binary32 of
# the ranges (rsqrt: of two binades, which repeat), and rounded up; the test walks a part of them.
LIMITS = [
    ("exp", -28.0, -SNAP, 0.89, 4.4e-8),
    ("sigmoid", SNAP, 2.0**60, 1.52, 9.0e-8),
    ("sigmoid", -27.7, -SNAP, 2.41, 4.4e-8),
    ("sigmoid", -(2.0**60), -27.7, np.inf, 9.1e-13),
    ("silu", SNAP, 27.7, 2.25, 1.28e-6),
    ("silu", 27.7, 2.0**60, 0.5, np.inf),
    ("silu", -27.7, -SNAP, 3.23, 5.5e-8),
    ("silu", -(2.0**60), -27.7, np.inf, 2.6e-11),
    ("tanh", SNAP, 0.625 - 2.0**-24, 0.72, 4.2e-8),
    ("tanh", 0.625, 2.0**60, 1.51, 9.0e-8),
    ("tanh", -(2.0**60), -SNAP, 1.51, 9.0e-8),
    ("gelu_tanh", SNAP, 16.0, 2.45, 5.2e-7),
    ("gelu_tanh", 16.0, 2.0**60, 0.0, 0.0),
    ("gelu_tanh", -1.0, -SNAP, 3.11, 4.7e-8),
    ("gelu_tanh", -6.0, -1.0, 54.3, 5.0e-8),
    ("gelu_tanh", -(2.0**60), -6.0, np.inf, 5.8e-12),
    ("gelu_erf", SNAP, 16.0, 3.63, 3.9e-7),
    ("gelu_erf", 16.0, 2.0**60, 0.0, 0.0),
    ("gelu_erf", -1.0, -SNAP, 3.54, 4.9e-8),
    ("gelu_erf", -(2.0**60), -1.0, 36.3, 5.7e-8),
    ("relu2", SNAP, 2.0**60, 0.5, np.inf),
    ("sin", SNAP, np.pi / 4, 0.74, 4.4e-8),
    ("cos", SNAP, np.pi / 4, 0.88, 5.3e-8),
    ("sin", np.pi / 4, 2.0**17, 1.54, 7.2e-8),
    ("cos", np.pi / 4, 2.0**17, 1.53, 7.2e-8),
    ("sin", 2.0**17, 2.0**20 - 0.0625, 2.07, 1.24e-7),
    ("cos", 2.0**17, 2.0**20 - 0.0625, 1.81, 8.0e-8),
    ("rsqrt", SNAP, 2.0**80, 1.50, np.inf),
]


def sigmoid64(x: F64) -> F64:
    with np.errstate(all="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def gelu_tanh64(x: F64) -> F64:
    with np.errstate(all="ignore"):
        return np.asarray(x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


erfc64 = np.vectorize(math.erfc, otypes=[np.float64])


FUNCTIONS: dict[str, tuple[Callable[[F32], F32], Callable[[F64], F64]]] = {
    "exp": (f.exp, np.exp),
    "sigmoid": (f.sigmoid, sigmoid64),
    "silu": (f.silu, lambda x: x * sigmoid64(x)),
    "tanh": (f.tanh, np.tanh),
    "gelu_tanh": (f.gelu_tanh, gelu_tanh64),
    "gelu_erf": (f.gelu_erf, lambda x: 0.5 * x * erfc64(-x / np.sqrt(2))),
    "relu2": (f.relu2, lambda x: np.maximum(x, 0) ** 2),
    "sin": (lambda t: f.sincos(t)[0], np.sin),
    "cos": (lambda t: f.sincos(t)[1], np.cos),
    "rsqrt": (f.rsqrt, lambda v: 1 / np.sqrt(v)),
}


def binary32_between(low: float, high: float) -> F32:
    """Every STRIDE-th binary32 from low to high, which have one sign, and the last one."""
    ends = sorted(int(np.float32(abs(x)).view(np.uint32)) for x in (low, high))
    bits = np.append(np.arange(ends[0], ends[1], STRIDE, dtype=np.uint32), np.uint32(ends[1]))
    return np.copysign(bits.view(np.float32), np.float32(low + high))


def errors(actual: F32, expected: F64) -> tuple[F64, F64]:
    """In units of the last place of the expected value (0 where that is below 2**-40), and absolute."""
    absolute = np.abs(actual.astype(np.float64) - expected)
    ulp = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    return np.where(np.abs(expected) >= SNAP, absolute / ulp, 0.0), absolute


@pytest.mark.parametrize(("name", "low", "high", "ulps", "absolute"), LIMITS)
def test_error_over_the_domain(name: str, low: float, high: float, ulps: float, absolute: float) -> None:
    golden, reference = FUNCTIONS[name]
    x = binary32_between(low, high)
    actual = golden(x)
    measured = errors(actual, reference(x.astype(np.float64)))
    assert measured[0].max() <= ulps
    assert measured[1].max() <= absolute
    bits = actual.view(np.uint32)
    assert ((bits == 0) | (bits & 0x7FFFFFFF >= 0x2B800000)).all(), "a result is not snapped"


def vectors() -> dict[str, list[tuple[int, Decimal]]]:
    table: dict[str, list[tuple[int, Decimal]]] = {}
    for line in (Path(__file__).parent / "data" / "functions.csv").read_text().splitlines()[1:]:
        name, bits, value = line.split(",")
        table.setdefault(name, []).append((int(bits, 16), Decimal(value)))
    return table


FORTY_DIGITS = {
    **{"exp": 0.89, "sigmoid": 2.41, "sin": 2.07, "cos": 1.81, "tanh": 1.51},
    **{"gelu_tanh": 54.3, "gelu_erf": 36.3},  # worst in the tail below -1
}


@pytest.mark.parametrize(("name", "ulps"), FORTY_DIGITS.items())
def test_against_forty_digits(name: str, ulps: float) -> None:
    rows = vectors()[name]
    assert len(rows) == 200
    x = np.array([bits for bits, _ in rows], dtype=np.uint32).view(np.float32)
    golden, reference = FUNCTIONS[name]
    for argument, actual, wide, (_, exact) in zip(x, golden(x), reference(x.astype(np.float64)), rows, strict=True):
        unit = Decimal(float(np.spacing(np.float32(abs(exact)))))
        limit = Decimal(ulps) * unit if abs(exact) >= Decimal(SNAP) else Decimal(SNAP)
        assert abs(Decimal(float(actual)) - exact) <= limit, float(argument)
        assert abs(Decimal(float(wide)) - exact) <= Decimal("1e-6") * unit, "the float64 reference itself"


def test_special_values() -> None:
    assert f.exp(np.float32(0)) == 1.0
    assert f.exp(np.float32(-27.8)) == 0.0
    assert f.exp(np.float32(-28)) == 0.0
    assert f.sigmoid(np.float32(0)) == 0.5
    assert f.silu(np.float32(0)).view(np.uint32) == 0
    for function in (f.tanh, f.gelu_tanh, f.gelu_erf, f.relu, f.relu2):
        assert function(np.float32(0)).view(np.uint32) == 0
    assert f.relu(np.float32(-3)).view(np.uint32) == 0
    assert f.tanh(np.array([2.0**60, -(2.0**60)], np.float32)).tolist() == [1.0, -1.0]
    assert [float(v) for v in f.sincos(np.float32(0))] == [0.0, 1.0]


def test_snap() -> None:
    edge = np.float32(SNAP)
    below = np.nextafter(edge, np.float32(0))
    assert f.snap(np.array([edge, -edge], np.float32)).tolist() == [SNAP, -SNAP]
    small = np.array([below, -below, -0.0, 1e-45, -1e-45], np.float32)
    assert f.snap(small).view(np.uint32).tolist() == [0] * 5


def test_rint_is_to_nearest_even() -> None:
    x = np.concatenate([np.arange(-(2.0**11), 2.0**11, 0.125), [2.0**22, -(2.0**22), 2.0**22 - 0.5, 2.0**21 + 0.5]])
    assert np.array_equal(f.rint(x.astype(np.float32)), np.rint(x).astype(np.float32))


def test_amax_bits() -> None:
    x = np.array([[0.5, -2.0, 1.0], [-0.0, 0.0, 0.0], [np.nan, np.inf, 1.0]], np.float32)
    assert f.amax_bits(x)[:2].tolist() == [0x40000000, 0]
    assert f.amax_bits(x)[2] > 0x7F800000
