# SPDX-License-Identifier: Apache-2.0
"""fma and fma_snapped against the processor's own instruction, bit for bit."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from colibri_sim.golden.fma import fma, fma_snapped
from colibri_sim.golden.functions import snap

F32 = npt.NDArray[np.float32]
Fma = Callable[[F32, F32, F32], F32]
N = 1_000_000


@pytest.fixture(scope="module")
def host_fma(tmp_path_factory: pytest.TempPathFactory) -> Fma:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no host C compiler: nothing to compare with")
    library = tmp_path_factory.mktemp("fma") / "host_fma.so"
    source = Path(__file__).with_name("host_fma.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    host = ctypes.CDLL(str(library))
    if not host.has_fma():
        pytest.skip(f"this {platform.machine()} processor has no fused multiply-add")

    def call(a: F32, b: F32, c: F32) -> F32:
        out = np.empty_like(a)
        operands = [np.ascontiguousarray(x) for x in (a, b, c)]
        host.fma_each(*(ctypes.c_void_p(x.ctypes.data) for x in (*operands, out)), ctypes.c_size_t(out.size))
        return out

    return call


def random_bits(rng: np.random.Generator, n: int = N) -> F32:
    return rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)


def with_exponents(rng: np.random.Generator, low: int, high: int, n: int = N) -> F32:
    """Random sign and fraction, exponent in low..high-1."""
    exponent = rng.integers(low + 127, high + 127, n, dtype=np.uint32) << np.uint32(23)
    return ((random_bits(rng, n).view(np.uint32) & np.uint32(0x807FFFFF)) | exponent).view(np.float32)


def sparse(rng: np.random.Generator, low: int, high: int) -> F32:
    """As with_exponents, but with few bits at the ends of the fraction, so that sums meet half-way points."""
    fraction = rng.choice(np.array([0, 1, 2, 3, 1 << 22, (1 << 22) + 1, 0x7FFFFF, 0x7FFFFE], np.uint32), N)
    bits = with_exponents(rng, low, high).view(np.uint32) & np.uint32(0xFF800000)
    return np.asarray(bits | fraction).view(np.float32)


def signed_zeros(rng: np.random.Generator) -> F32:
    return np.asarray(np.copysign(np.zeros(N, np.float32), random_bits(rng)))


def near(rng: np.random.Generator, x: F32, ulps: int = 3) -> F32:
    """x moved by a few units in its last place."""
    with np.errstate(all="ignore"):
        return np.asarray(x.view(np.int32) + rng.integers(-ulps, ulps + 1, x.size, dtype=np.int32)).view(np.float32)


def product(a: F32, b: F32) -> F32:
    with np.errstate(all="ignore"):
        return np.asarray(a * b)


def half_way(rng: np.random.Generator) -> tuple[F32, F32, F32]:
    """c with a product that is half its last place, up to a little: the double rounding that round-to-odd is for."""
    c = with_exponents(rng, -20, 20)
    half = np.ldexp(np.float32(1), (np.frexp(c)[1] - 25).astype(np.int32)).astype(np.float32)
    a = near(rng, np.ones(N, np.float32), 2)
    return a, near(rng, half, 2), c


CASES: dict[str, Callable[[np.random.Generator], tuple[F32, F32, F32]]] = {
    "random bits": lambda r: (random_bits(r), random_bits(r), random_bits(r)),
    "similar exponents": lambda r: (with_exponents(r, -3, 3), with_exponents(r, -3, 3), with_exponents(r, -30, 30)),
    "few bits": lambda r: (sparse(r, -3, 3), sparse(r, -3, 3), sparse(r, -52, 52)),
    "half-way": half_way,
    "near cancelling": lambda r: (
        a := with_exponents(r, -10, 10),
        b := with_exponents(r, -10, 10),
        near(r, -product(a, b)),
    ),
    "subnormal results": lambda r: (with_exponents(r, -80, -60), with_exponents(r, -75, -60), signed_zeros(r)),
    "subnormal cancelling": lambda r: (
        a := sparse(r, -70, -60),
        b := sparse(r, -66, -58),
        near(r, -product(a, b), 1 << 20),
    ),
    "subnormal operands": lambda r: (
        (r.integers(0, 1 << 23, N, dtype=np.uint32) | (r.integers(0, 2, N, dtype=np.uint32) << 31)).view(np.float32),
        with_exponents(r, -5, 5),
        (r.integers(0, 1 << 23, N, dtype=np.uint32) | (r.integers(0, 2, N, dtype=np.uint32) << 31)).view(np.float32),
    ),
    "subnormal half-way": lambda r: (
        # The product is half the last place of c, but for its own last bits, which float64 loses beside c.
        near(r, np.full(N, 2.0**-75, np.float32), 2),
        near(r, np.full(N, 2.0**-75, np.float32), 2),
        r.integers(1 << 21, 1 << 23, N, dtype=np.uint32).view(np.float32),
    ),
    "smallest normal": lambda r: (
        near(r, np.full(N, 2.0**-63, np.float32)),
        near(r, np.full(N, 2.0**-63, np.float32)),
        r.integers(0, 16, N, dtype=np.uint32).view(np.float32) * np.float32(-1),
    ),
    "overflow threshold": lambda r: (
        near(r, np.full(N, 2.0**64, np.float32)),
        near(r, np.full(N, 2.0**64, np.float32)),
        near(r, np.full(N, -(2.0**103), np.float32)) * r.choice(np.array([1, 2, 0.5, -1], np.float32), N),
    ),
    "infinities": lambda r: (
        r.choice(np.array([np.inf, -np.inf, 0, -0.0, 1, np.nan], np.float32), N),
        r.choice(np.array([np.inf, -np.inf, 0, -0.0, 2, 1e30], np.float32), N),
        r.choice(np.array([np.inf, -np.inf, 0, -0.0, 3, -1e38], np.float32), N),
    ),
}


def assert_same_bits(expected: F32, actual: F32) -> None:
    differ = (expected.view(np.uint32) != actual.view(np.uint32)) & ~(np.isnan(expected) & np.isnan(actual))
    assert np.flatnonzero(differ).tolist()[:5] == []


@pytest.mark.parametrize("case", CASES)
def test_fma_is_the_processors(case: str, host_fma: Fma) -> None:
    a, b, c = CASES[case](np.random.default_rng(len(case)))
    for x, y in ((a, b), (b, a), (-a, b)):
        assert_same_bits(host_fma(x, y, c), fma(x, y, c))


def test_signed_zeros(host_fma: Fma) -> None:
    zeros = np.array([0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45], np.float32)
    a, b, c = (np.ravel(x).copy() for x in np.meshgrid(zeros, zeros, zeros))
    assert_same_bits(host_fma(a, b, c), fma(a, b, c))


def test_exact_cancellation_gives_positive_zero() -> None:
    assert not np.signbit(fma(np.float32(3), np.float32(5), np.float32(-15)))


def test_half_way_cases_are_met() -> None:
    a, b, c = half_way(np.random.default_rng(1))
    p = a.astype(np.float64) * b.astype(np.float64)
    twice = (p + c.astype(np.float64)).astype(np.float32)
    assert (twice != fma(a, b, c)).sum() > 1000


@pytest.mark.parametrize("spread", [(-40, -30), (-3, 3), (-40, 50)])
def test_fma_snapped_is_fma_on_snapped_operands(spread: tuple[int, int]) -> None:
    rng = np.random.default_rng(abs(spread[1]))
    acc = np.zeros(N // 8)
    for _ in range(16):
        a, b = (snap(with_exponents(rng, *spread, N // 8)) for _ in range(2))
        out = np.empty_like(acc)
        expected = fma(a, b, acc.astype(np.float32))
        fma_snapped(a.astype(np.float64) * b.astype(np.float64), acc, out)
        assert_same_bits(expected, out.astype(np.float32))
        acc = out


def test_fma_broadcasts_and_takes_scalars() -> None:
    assert fma(2.0, np.array([1.0, 2.0], np.float32), 1.0).tolist() == [3.0, 5.0]
    assert fma(np.float32(2), np.float32(3), np.float32(1)).shape == ()
