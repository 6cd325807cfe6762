# SPDX-License-Identifier: Apache-2.0
"""Each portable matrix kernel against NumPy, called directly, with dimensions that are no multiple of anything."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from engine_float import F, activations, dot8, fma, pointer, quantise, snap
from engine_tiny import Matrix, Vector, aligned, encode, pad8, split

# A library that holds the format, and the kernel's name.
KERNELS = {
    "f32": ("moe_f32", "f32"),
    "bf16": ("moe_16", "bf16"),
    "f16": ("moe_16", "f16"),
    "q8": ("moe_q8", "q8"),
    "q8:32": ("moe_q8_group", "q8_group"),
    "q8:64": ("moe_q8_group", "q8_group"),
    "q8:128": ("moe_q8_group", "q8_group"),
    "q4:32": ("moe_q4", "q4"),
    "q4:64": ("moe_q4", "q4"),
    "q4:128": ("moe_q4", "q4"),
}


def stored(data: bytes) -> np.ndarray:
    out = aligned(len(data), 16)
    out[:] = np.frombuffer(data, np.uint8)
    return out


def expected_row(weights: np.ndarray, matrix: Matrix, spec: str, r: int, x: np.ndarray) -> F:
    """Return one element of the product from the stored bytes."""
    dtype, group = split(spec)
    cols = matrix.cols
    row = weights[r * matrix.row_bytes : (r + 1) * matrix.row_bytes]
    if dtype == "f32":
        return snap(dot8(row.view(F)[:cols], x))
    if dtype == "bf16":
        return snap(dot8((row.view(np.uint16).astype(np.uint32) << 16).view(F)[:cols], x))
    if dtype == "f16":
        return snap(dot8(row.view(np.float16).astype(F)[:cols], x))
    size = group or cols
    n_groups = -(-cols // size)
    spans = [slice(g * size, min(cols, (g + 1) * size)) for g in range(n_groups)]
    scales = weights[matrix.scales_offset :]
    if dtype == "q8":
        q = row.view(np.int8)[:cols].astype(np.int64)
        s = scales.view(F) if len(scales) % 4 == 0 else scales[: len(scales) // 4 * 4].view(F)
        if not group:
            xq, xs = quantise(x)
            return snap(F(int(q @ xq)) * F(s[r] * xs))
        y = F(0)
        for g, span in enumerate(spans):
            xq, xs = quantise(x[span])
            y = fma(F(int(q[span] @ xq)), F(s[r * n_groups + g] * xs), y)
        return snap(y)
    nibbles = np.stack([row & 15, row >> 4], axis=1).reshape(-1)[:cols].astype(np.int64)
    q = np.where(nibbles >= 8, nibbles - 16, nibbles)
    s = scales[: 4 * matrix.rows].view(F)
    m = scales[4 * matrix.rows + r * n_groups :][:n_groups].astype(np.int64)
    xq, xs = quantise(x)
    total = sum(int(m[g]) * int(q[span] @ xq[span]) for g, span in enumerate(spans))
    return snap(F(total) * F(s[r] * xs))


def vector_of(library: ctypes.CDLL, x: np.ndarray, spec: str) -> tuple[Vector, list[np.ndarray]]:
    dtype, group = split(spec)
    n = len(x)
    values = np.zeros(pad8(n), F)
    values[:n] = x
    q = np.zeros(pad8(n), np.int8)
    size = group if dtype == "q8" and group else n
    scales = np.zeros(-(-n // size), F)
    for g, begin in enumerate(range(0, n, size)):
        end = min(n, begin + size)
        library.colibri_quantise_portable(ctypes.c_void_p(q.ctypes.data + begin), ctypes.c_void_p(scales.ctypes.data + 4 * g),
                                          ctypes.c_void_p(values.ctypes.data + 4 * begin), end - begin)  # fmt: skip
    keep = [values, q, scales]
    return Vector(*(a.ctypes.data for a in keep)), keep


@pytest.mark.parametrize("spec", KERNELS)
@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (3, 7), (5, 8), (9, 33), (6, 65), (7, 130), (4, 257)])
@pytest.mark.parametrize("size", [1.0, 2.0**-39.5], ids=["ordinary", "results around the smallest"])
def test_matvec(spec: str, rows: int, cols: int, size: float, library_of: Callable[..., ctypes.CDLL]) -> None:
    name, kernel = KERNELS[spec]
    library = library_of(name)
    rng = np.random.default_rng(rows * 1000 + cols)
    data, descriptor, _ = encode(rng.standard_normal((rows, cols)).astype(F), spec)
    weights, matrix = stored(data), Matrix(*descriptor)
    x = activations(rng, cols) * F(size)
    if size < 1:
        x = np.where(np.abs(x) < 2.0**-40, F(0), x)
        if split(spec)[0] in ("q8", "q4"):
            x[0] = 2.0**-32  # a smaller vector would be zero
    vector, _keep = vector_of(library, x, spec)
    expected = np.array([expected_row(weights, matrix, spec, r, x) for r in range(rows)], F)
    for begin, end in {(0, rows), (0, 1), (rows // 2, rows), (1, rows - 1)}:
        out = np.full(rows, 99, F)
        getattr(library, f"colibri_matvec_{kernel}_portable")(
            pointer(out), ctypes.byref(matrix), pointer(weights), ctypes.byref(vector), begin, end
        )
        want = np.full(rows, 99, F)
        want[begin:end] = expected[begin:end]
        assert want.tobytes() == out.tobytes()


@pytest.mark.parametrize("spec", KERNELS)
@pytest.mark.parametrize("cols", [1, 31, 64, 130])
def test_widen(spec: str, cols: int, library_of: Callable[..., ctypes.CDLL]) -> None:
    name, kernel = KERNELS[spec]
    rng = np.random.default_rng(cols)
    data, descriptor, used = encode(rng.standard_normal((3, cols)).astype(F), spec)
    weights, matrix = stored(data), Matrix(*descriptor)
    for r in range(3):
        out = np.full(cols + 1, 99, F)
        widen = getattr(library_of(name), f"colibri_widen_{kernel.removesuffix('_group')}_portable")
        widen(pointer(out), ctypes.byref(matrix), pointer(weights), r)
        assert out[cols] == 99
        np.testing.assert_allclose(out[:cols], used[r], rtol=2e-7, atol=0)


def test_every_binary16_widens_exactly(library_of: Callable[..., ctypes.CDLL]) -> None:
    finite = np.array([h for h in range(65536) if h >> 10 & 31 != 31], np.uint16)
    weights, matrix = stored(finite.tobytes()), Matrix(1, len(finite), 2, 0, 1, 2 * len(finite), 0)
    out = np.zeros(len(finite), F)
    library_of("moe_16").colibri_widen_f16_portable(pointer(out), ctypes.byref(matrix), pointer(weights), 0)
    expected = finite.view(np.float16).astype(F) + F(0)  # -0.0 + 0.0 = +0.0
    assert expected.tobytes() == out.tobytes()


def test_largest_int8_sums_do_not_overflow(library_of: Callable[..., ctypes.CDLL]) -> None:
    for spec, cols in (("q8", 65536), ("q4:128", 8192)):
        dtype, group = split(spec)
        top = np.full(cols, 127 if dtype == "q8" else 0x77, np.uint8)[: cols if dtype == "q8" else cols // 2]
        tail = np.float32(1).tobytes() + (b"\xff" * (cols // group) if group else b"")
        weights = stored(top.tobytes() + tail)
        matrix = Matrix(1, cols, 3 if dtype == "q8" else 4, group, 1, len(top), len(top))
        name, kernel = KERNELS[spec]
        vector, _keep = vector_of(library_of(name), np.full(cols, 127, F), spec)
        out = np.zeros(1, F)
        getattr(library_of(name), f"colibri_matvec_{kernel}_portable")(
            pointer(out), ctypes.byref(matrix), pointer(weights), ctypes.byref(vector), 0, 1
        )
        assert F(cols * 127 * 127 if dtype == "q8" else cols * 7 * 127 * 255) == out[0]
