# SPDX-License-Identifier: Apache-2.0
"""Each portable vector kernel against NumPy, bit for bit, at every length, called directly."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from engine_float import F, activations, dot8, exp_bits, fma, pointer, quantise, silu_bits, snap, widen_half

LENGTHS = [*range(1, 20), 65]
# Results about 2**-40, where snap decides; ordinary ones; large ones.
SIZES = [2.0**-39.5, 2.0**-20, 1.0, 2.0**20, 2.0**40]


class KvRows(ctypes.Structure):
    _fields_ = [
        ("values", ctypes.c_void_p), ("scales", ctypes.c_void_p), ("n_rows", ctypes.c_uint32), ("n_cols", ctypes.c_uint32),
        ("stride", ctypes.c_uint32), ("scale_stride", ctypes.c_uint32),
    ]  # fmt: skip


def snapped(rng: np.random.Generator, n: int, size: float = 1.0) -> np.ndarray:
    x = activations(rng, n) * F(size)
    return np.where(np.abs(x) < 2.0**-40, F(0), x)


def guarded(x: np.ndarray) -> np.ndarray:
    """Return x with one element more, which no kernel may write."""
    return np.append(x, F(99)).astype(F)


def same(expected: list[F] | np.ndarray, got: np.ndarray) -> bool:
    return np.array(expected, F).tobytes() == got.tobytes()


@pytest.fixture(params=LENGTHS)
def n(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def rng(n: int) -> np.random.Generator:
    return np.random.default_rng(n)


@pytest.fixture
def library(library_of: Callable[..., ctypes.CDLL]) -> ctypes.CDLL:
    library = library_of("moe_q8")
    library.colibri_dot_portable.restype = ctypes.c_float
    library.colibri_absmax_portable.restype = ctypes.c_uint32
    return library


def test_dot(n: int, rng: np.random.Generator, library: ctypes.CDLL) -> None:
    for size in SIZES:
        a, b = snapped(rng, n), snapped(rng, n, size)
        assert snap(dot8(a, b)) == library.colibri_dot_portable(pointer(a), pointer(b), n)


def test_axpy(n: int, rng: np.random.Generator, library: ctypes.CDLL) -> None:
    x, y = snapped(rng, n), snapped(rng, n)
    z = guarded(y)
    library.colibri_axpy_portable(pointer(z), ctypes.c_float(0.3), pointer(x), n)
    assert same([*(fma(F(0.3), a, b) for a, b in zip(x, y, strict=True)), F(99)], z)


def test_scale_add_and_normalise(n: int, rng: np.random.Generator, library: ctypes.CDLL) -> None:
    for size in SIZES:
        x, y = snapped(rng, n, size), snapped(rng, n, size)
        z = guarded(x)
        library.colibri_scale_portable(pointer(z), ctypes.c_float(0.3), n)
        assert same([*(snap(F(v * F(0.3))) for v in x), F(99)], z)
        y[::2] = -x[::2] * F(1 - 2**-20)
        z = guarded(x)
        library.colibri_add_portable(pointer(z), pointer(y), n)
        assert same([*(snap(F(v + w)) for v, w in zip(x, y, strict=True)), F(99)], z)
        z = np.full(n + 1, 99, F)
        library.colibri_normalise_portable(pointer(z), pointer(x), ctypes.c_float(0.3), pointer(y), n)
        assert same([*(snap(F(snap(F(v * F(0.3))) * w)) for v, w in zip(x, y, strict=True)), F(99)], z)


def test_absmax_and_quantise(n: int, rng: np.random.Generator, library: ctypes.CDLL) -> None:
    for size in (*SIZES, 1e-9, 1e9):
        x = activations(rng, n) * F(size)
        assert np.abs(x).max().view(np.uint32) == library.colibri_absmax_portable(pointer(x), n)
        q, scale = np.full(n + 1, 55, np.int8), np.zeros(1, F)
        library.colibri_quantise_portable(pointer(q), pointer(scale), pointer(x), n)
        want_q, want_s = quantise(x)
        assert (list(want_q), want_s, 55) == (list(q[:n]), scale[0], q[n])


@pytest.mark.parametrize("worst", [0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x80000001])
def test_absmax_sees_infinities_and_nan(worst: int, n: int, rng: np.random.Generator, library: ctypes.CDLL) -> None:
    x = (activations(rng, n) * F(0)).view(np.uint32)
    x[rng.integers(n)] = worst
    assert worst & 0x7FFFFFFF == library.colibri_absmax_portable(pointer(x), n)


@pytest.mark.parametrize("amax", [0.0, 2.0**-40, np.nextafter(F(2.0**-33), F(0)), 2.0**-33, 2.0**50, 1.0])
def test_quantise_at_its_thresholds(amax: float, library: ctypes.CDLL) -> None:
    x = np.array([amax, -amax, amax / 2, 0, amax / 3], F)
    q, scale = np.zeros(5, np.int8), np.full(1, 9, F)
    library.colibri_quantise_portable(pointer(q), pointer(scale), pointer(x), 5)
    want_q, want_s = quantise(x)
    assert (list(want_q), want_s) == (list(q), scale[0])


@pytest.mark.parametrize("size", [2.0**-38, 1.0, 30.0, 2.0**60])
def test_softmax(size: float, n: int, rng: np.random.Generator, library: ctypes.CDLL) -> None:
    for sign in (1, -1):
        z = snapped(rng, n, size)
        z = sign * np.abs(z) + F(0)
        z[rng.integers(n)] = z[rng.integers(n)]
        total, e = F(0), [exp_bits(snap(F(v - z.max()))) for v in z]
        for v in e:
            total = F(total + v)
        got = guarded(z)
        library.colibri_softmax_portable(pointer(got), n)
        assert same([*(snap(F(v / total)) for v in e), F(99)], got)


@pytest.mark.parametrize("size", [2.0**-39, 1.0, 12.0, 40.0, 2.0**60])
def test_swiglu(size: float, n: int, rng: np.random.Generator, library: ctypes.CDLL) -> None:
    g, u = snapped(rng, n, size), snapped(rng, n)
    got = guarded(g)
    library.colibri_swiglu_portable(pointer(got), pointer(u), n)
    assert same([*(snap(F(silu_bits(v) * w)) for v, w in zip(g, u, strict=True)), F(99)], got)


@pytest.mark.parametrize("adjacent", [False, True])
def test_rotate(adjacent: bool, n: int, rng: np.random.Generator, library: ctypes.CDLL) -> None:
    for size in SIZES:
        x = snapped(rng, 2 * n + 3, size)  # three elements past the rotary dimension
        angle = rng.uniform(0, 7, n)
        cos, sin = np.cos(angle).astype(F), np.sin(angle).astype(F)
        want = x.copy()
        for i in range(n):
            a, b = (2 * i, 2 * i + 1) if adjacent else (i, i + n)
            want[a] = snap(fma(-x[b], sin[i], snap(F(x[a] * cos[i]))))
            want[b] = snap(fma(x[a], sin[i], snap(F(x[b] * cos[i]))))
        step, distance = (2, 1) if adjacent else (1, n)
        library.colibri_rotate_portable(pointer(x), pointer(cos), pointer(sin), n, step, distance)
        assert same(want, x)


@pytest.mark.parametrize(("kv", "name"), [("f32", "moe_f32"), ("f16", "moe_16"), ("q8", "moe_q8")])
@pytest.mark.parametrize("n_rows", [1, 2, 7])
def test_scores_and_mix(
    kv: str, name: str, n_rows: int, n: int, rng: np.random.Generator, library_of: Callable[..., ctypes.CDLL]
) -> None:
    """Rows of a cache with another head beside this one."""
    library = library_of(name)
    for size in SIZES[:4]:
        stride, scale_stride = n + 5, 3
        cache = snapped(rng, n_rows * stride, size)
        scales = (np.abs(snapped(rng, n_rows * scale_stride)) * F(size) + F(2.0**-40)).astype(F)
        if kv == "f32":
            used = cache
        elif kv == "f16":
            cache = np.clip(cache, -65000, 65000).astype(np.float16)
            used = widen_half(cache)
        else:
            cache = rng.integers(-127, 128, len(cache)).astype(np.int8)
            scales[-scale_stride:], cache[-stride:] = 0, 0
            by_row = np.repeat(scales[::scale_stride], stride)
            used = np.array([snap(v) for v in cache.astype(F) * by_row], F)
        rows = KvRows(cache.ctypes.data, scales.ctypes.data, n_rows, n, stride, scale_stride)
        head = [used[t * stride : t * stride + n] for t in range(n_rows)]
        q, p = snapped(rng, n), np.abs(snapped(rng, n_rows))
        z, o = np.full(n_rows + 1, 99, F), np.full(n + 1, 99, F)
        getattr(library, f"colibri_scores_{kv}_portable")(pointer(z), pointer(q), ctypes.byref(rows))
        assert same([*(snap(dot8(q, k)) for k in head), F(99)], z)
        getattr(library, f"colibri_mix_{kv}_portable")(pointer(o), pointer(p), ctypes.byref(rows))
        sums = [F(0)] * n
        for t in range(n_rows):
            sums = [fma(p[t], v, total) for v, total in zip(head[t], sums, strict=True)]
        assert same([*(snap(v) for v in sums), F(99)], o)


def test_every_binary16_and_what_lies_between_is_narrowed_as_numpy_does(library_of: Callable[..., ctypes.CDLL]) -> None:
    finite = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(F)
    middle = (finite[:-1] + finite[1:]) / F(2)  # exact in binary32
    x = np.concatenate([finite, middle, np.nextafter(middle, F(0)), np.nextafter(middle, F(1e6)), [F(65519.996)]])
    x = np.array([snap(v) for v in (*x, *-x)], F)
    out = np.zeros(len(x), np.uint16)
    library_of("moe_16").colibri_narrow_f16_portable(pointer(out), pointer(x), len(x))
    assert x.astype(np.float16).tobytes() == out.tobytes()
