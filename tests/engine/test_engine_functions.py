# SPDX-License-Identifier: Apache-2.0
"""exp, silu, sincos against float64; the integer fma and square root against the host's instructions; routing."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from engine_float import K, exp_bits, fma, rint, silu_bits, snap
from engine_tiny import FIRMWARE, Gate, flags_of, tiny_of

F = np.float32


class Pair(ctypes.Structure):
    _fields_ = [("sin", ctypes.c_float), ("cos", ctypes.c_float)]


@pytest.fixture
def library(library_of: Callable[..., ctypes.CDLL]) -> ctypes.CDLL:
    library = library_of("moe_f32")
    library.colibri_sincos.restype = Pair
    return library


def samples(low: float, high: float, n: int = 20000) -> list[float]:
    rng = np.random.default_rng(3)
    return [float(F(x)) for x in np.concatenate([rng.uniform(low, high, n), [low, high, (low + high) / 2]])]


def sincos_bits(t: float) -> tuple[F, F]:
    k = rint(F(F(t) * K["TWO_OVER_PI"]))
    r = snap(fma(-k, K["PIO2_C"], fma(-k, K["PIO2_B"], fma(-k, K["PIO2_A"], F(t)))))
    r2 = F(r * r)
    a = fma(fma(K["S7"], r2, K["S5"]), r2, K["S3"])
    s = fma(F(a * r2), r, r)
    b = fma(fma(fma(K["C8"], r2, K["C6"]), r2, K["C4"]), r2, F(-0.5))
    c = fma(b, r2, F(1))
    sin, cos = [(s, c), (c, -s), (-s, -c), (-c, s)][int(k) % 4]
    return snap(sin), snap(cos)


def test_functions_give_the_contracts_bits(library: ctypes.CDLL) -> None:
    for x in samples(-29, 0, 1500):
        assert exp_bits(x) == library.test_exp(ctypes.c_float(x))
    for x in samples(-40, 40, 1500):
        assert silu_bits(x) == library.test_silu(ctypes.c_float(x))
    for t in (*samples(0, 9, 700), *samples(0, 2.0**20 - 1, 700)):
        got = library.colibri_sincos(ctypes.c_float(t))
        assert sincos_bits(t) == (got.sin, got.cos)


def test_exp(library: ctypes.CDLL) -> None:
    for x in samples(-27.5, 0):
        assert abs(library.test_exp(ctypes.c_float(x)) / math.exp(x) - 1) < 2e-7
    assert library.test_exp(ctypes.c_float(-0.0)) == 1
    exact = {0.0: 1.0, -28.0: 0.0, -27.8: 0.0, -1e30: 0.0}
    assert exact == {x: library.test_exp(ctypes.c_float(x)) for x in exact}


def test_silu(library: ctypes.CDLL) -> None:
    for x in samples(-25, 25):
        expected = x / (1 + math.exp(-x))
        assert abs(library.test_silu(ctypes.c_float(x)) - expected) <= 4e-7 * abs(expected)
    exact = {0.0: 0.0, -60.0: 0.0, 60.0: 60.0, 2.0**100: 2.0**100}
    assert exact == {x: library.test_silu(ctypes.c_float(x)) for x in exact}


def test_sincos(library: ctypes.CDLL) -> None:
    exact = library.colibri_sincos(ctypes.c_float(0))
    assert (exact.sin, exact.cos) == (0, 1)
    for limit in (7.0, 1000.0, 2.0**20 - 1):
        for t in samples(0, limit, 10000):
            got = library.colibri_sincos(ctypes.c_float(t))
            assert abs(got.sin - math.sin(t)) < 2e-7
            assert abs(got.cos - math.cos(t)) < 2e-7


@pytest.mark.parametrize("ties", [False, True])
def test_routing(ties: bool, library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(11)
    case = tiny_of("moe_f32").case
    gate = Gate(router=0)
    for _ in range(3000):
        z = (rng.integers(-2, 3, case.n_experts) if ties else rng.standard_normal(case.n_experts) * 20).astype(F)
        ids, weights = np.zeros(case.top_k, np.int32), np.zeros(case.top_k, F)
        library.colibri_route(*(ctypes.c_void_p(a.ctypes.data) for a in (ids, weights, z)), ctypes.byref(gate), None)
        order = np.argsort(-z, kind="stable")[: case.top_k]
        assert list(order) == list(ids)
        a = np.exp(np.maximum(z[order].astype(float) - z[order[0]], -28))
        np.testing.assert_allclose(weights, a / a.sum(), atol=3e-7)


@pytest.mark.parametrize("core", ["-DWIDE", "-DNARROW"])
def test_the_integer_fma_and_sqrt_are_the_instructions(tmp_path: Path, core: str) -> None:
    (tmp_path / "model_config.h").write_text(tiny_of("moe_f32").config)
    program = tmp_path / "soft"
    subprocess.run(["gcc", *flags_of("gcc"), "-O2", "-mfma", core, f"-I{FIRMWARE / 'include'}", f"-I{tmp_path}",
                    f"-I{FIRMWARE}", str(Path(__file__).with_name("soft_float.c")), "-o", str(program)], check=True)  # fmt: skip
    result = subprocess.run([program], capture_output=True, text=True, check=False)
    n_checked, n_wrong = re.findall(r"\d+", result.stdout.splitlines()[-1])
    assert (result.returncode, int(n_wrong)) == (0, 0), result.stdout
    assert int(n_checked) > 26_000_000
