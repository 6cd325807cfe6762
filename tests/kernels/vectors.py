# SPDX-License-Identifier: Apache-2.0
"""Calls of the vector kernels that reach every length and threshold, and the memory that docs/NUMERICS.md says each leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from colibri_sim.golden import functions as f
from colibri_sim.golden import vectors as v
from colibri_sim.golden.fma import fma
from colibri_sim.golden.products import quantise

from .program import F, F32Array

Kv = Literal["f32", "f16", "q8"]
KERNELS = (
    "DOT",
    "AXPY",
    "SCALE",
    "ADD",
    "NORMALISE",
    "ABSMAX",
    "SOFTMAX",
    "SWIGLU",
    "ROTATE",
    "SCORES",
    "MIX",
    "STORE",
    "MATVEC",
)
LENGTHS = (*range(1, 20), 31, 64, 65)
# Results about 2**-40, where snap decides; ordinary ones; large ones.
SIZES = (2.0**-39.5, 2.0**-20, 1.0, 2.0**20, 2.0**40)
UNWRITTEN = F(99)


@dataclass(frozen=True)
class Call:
    """One call: its words (vectors.c), the memory before it and the memory after it."""

    words: tuple[int, ...]
    before: F32Array
    after: F32Array

    def __str__(self) -> str:
        return f"{KERNELS[self.words[0]]} {self.words[1:]}"


def bits(value: float | np.float32) -> int:
    return int(F(value).view(np.uint32))


def call(kernel: str, vectors: list[np.ndarray], results: dict[int, np.ndarray], *more: int) -> Call:
    """A call on `vectors`, one after the other with a word between; results: number of the vector -> what it becomes.

    more  the words after the positions of (at most three) vectors
    """
    parts, places, at = [], [], 0
    for vector in vectors:
        words = vector.view(F) if vector.dtype.itemsize == 4 else np.frombuffer(padded(vector), F)
        parts += [words, np.full(1, UNWRITTEN)]
        places.append(at)
        at += len(words) + 1
    before = np.concatenate(parts).astype(F, copy=False)
    after = before.copy()
    for number, result in results.items():
        raw = np.frombuffer(padded(result, before[places[number] :].tobytes()), F)
        after[places[number] : places[number] + len(raw)] = raw
    positions = [*places[:3], 0, 0, 0][:3]
    words = (KERNELS.index(kernel), *positions, *more)
    return Call((*words, *[0] * (8 - len(words))), before, after)


def padded(values: np.ndarray, behind: bytes = b"\0\0\0\0") -> bytes:
    """Whole words: the last one completed with what stands there."""
    raw = values.tobytes()
    return raw + behind[len(raw) : len(raw) + -len(raw) % 4].ljust(-len(raw) % 4, b"\0")


def drawn(rng: np.random.Generator, n: int, size: float = 1.0) -> F32Array:
    x = rng.standard_normal(n).astype(F) * F(size)
    x[rng.random(n) < 0.1] = 0
    return f.snap(x)


def calls() -> Iterator[Call]:
    """Every kernel that the KV cache's format does not change."""
    rng = np.random.default_rng(5)
    a = F(0.3)
    for n in LENGTHS:
        for size in SIZES:
            x, y, w = drawn(rng, n, size), drawn(rng, n), drawn(rng, n)
            near = (-x * F(1 - 2.0**-20)).astype(F)
            y[::2] = f.snap(near[::2])
            one = np.zeros(1, F)
            yield call("DOT", [one, x, w], {0: f.snap(v.dot8(x, w)).reshape(1)}, n)
            yield call("AXPY", [w, x], {0: fma(a, x, w)}, bits(a), n)
            yield call("SCALE", [x], {0: f.snap(x * a)}, bits(a), n)
            yield call("ADD", [x, y], {0: f.snap(x + y)}, 0, n)
            normalised = f.snap(f.snap(x * a) * w)
            yield call("NORMALISE", [one.repeat(n), x, w], {0: normalised}, bits(a), n)
            made = call("NORMALISE", [x, w], {0: normalised})
            yield Call((*made.words[:2], made.words[1], made.words[2], bits(a), n, 0, 0), made.before, made.after)
            yield call("ABSMAX", [one, x], {0: f.amax_bits(x).reshape(1)}, 0, n)
        worst = drawn(rng, n)
        worst.view(np.uint32)[rng.integers(n)] = rng.choice([0x7F800000, 0xFF800000, 0x7FC00001, 0xFFFFFFFF])
        yield call("ABSMAX", [np.zeros(1, F), worst], {0: f.amax_bits(worst).reshape(1)}, 0, n)
        for size in (2.0**-39, 1.0, 12.0, 30.0, 2.0**60):
            for z in (drawn(rng, n, size), np.abs(drawn(rng, n, size)), 0 - np.abs(drawn(rng, n, size))):
                yield call("SOFTMAX", [z], {0: v.softmax(z)}, 0, n)
            g, u = drawn(rng, n, size), drawn(rng, n)
            yield call("SWIGLU", [g, u], {0: f.snap(f.silu(g) * u)}, 0, n)
        for size in SIZES:
            angle = rng.uniform(0, 7, n)
            cos, sin = np.cos(angle).astype(F), np.sin(angle).astype(F)
            for step, distance in ((1, n), (2, 1)):
                x = drawn(rng, 2 * n + 3, size)  # three elements past the rotary dimension
                first = step * np.arange(n)
                after = x.copy()
                after[first], after[first + distance] = v.rotate_pairs(x[first], x[first + distance], sin, cos)
                yield call("ROTATE", [x, cos, sin], {0: after}, n, step, distance)


def float_products() -> Iterator[Call]:
    """Matrices of the float formats, rows padded to eight columns."""
    rng = np.random.default_rng(8)
    for cols in LENGTHS:
        for rows, size in zip((1, 2, 5, 9, 3), SIZES, strict=True):
            width = -(-cols // 8) * 8
            w, x = np.zeros((rows, width), F), np.zeros(width, F)
            w[:, :cols], x[:cols] = drawn(rng, rows * cols).reshape(rows, cols), drawn(rng, cols, size)
            halves = w.astype(np.float16)
            short = w.view(np.uint32) >> 16
            for dtype, stored, used in (
                (0, w, w),
                (1, short.astype(np.uint16), (short << 16).view(F)),
                (2, halves, f.snap(halves.astype(F))),
            ):
                y = f.snap(v.dot8_matrix(used, x[None])[0])
                yield call("MATVEC", [stored.reshape(-1), x, np.zeros(rows, F)], {2: y}, rows, cols, dtype)


def exp_calls() -> Iterator[Call]:
    """exp over its range and around where it becomes 0, through the sum of one and a zero's softmax, and through silu."""
    ends = F(-27.726) + np.arange(-3000, 3000, dtype=F) * F(2e-6)
    for x in (-np.linspace(0, 32, 6000, dtype=F), ends, -np.geomspace(2.0**-40, 40, 3000, dtype=F)):
        for part in np.array_split(f.snap(x), len(x) // 500):
            n = len(part)
            z = np.append(part, F(0))
            yield call("SOFTMAX", [z], {0: v.softmax(z)}, 0, n + 1)
            for g in (part, -part + F(0)):
                u = np.full(n, 2.0**40, F)  # what exp gives next to 2**-40 stays visible
                yield call("SWIGLU", [g, u], {0: f.snap(f.silu(g) * u)}, 0, n)


def kv_calls(kv: Kv) -> Iterator[Call]:
    """scores and mix over rows of a cache that holds another head too, and what appending to that cache stores."""
    rng = np.random.default_rng(6)
    for n in LENGTHS:
        for n_rows, size in zip((1, 2, 7, 9), SIZES[:4], strict=True):
            stride, scale_stride = n + 5, 3
            cache, scales = drawn(rng, n_rows * stride, size), np.abs(drawn(rng, n_rows * scale_stride)) + F(2.0**-40)
            if kv == "f16":
                cache = np.clip(cache, -65000, 65000).astype(np.float16)
                used = f.snap(cache.astype(F))
            elif kv == "q8":
                cache = rng.integers(-127, 128, len(cache)).astype(np.int8)
                scales[-scale_stride:], cache[-stride:] = 0, 0
                used = f.snap(cache.astype(F) * scales[::scale_stride].repeat(stride))
            else:
                used = cache
            head = used.reshape(n_rows, stride)[:, :n]
            q, p = drawn(rng, n), np.abs(drawn(rng, n_rows))
            numbers = np.array([n_rows, n, stride, scale_stride], np.uint32)
            z, o = np.zeros(n_rows, F), np.zeros(n, F)
            for name, out, by, result in (
                ("SCORES", z, q, f.snap(v.dot8_matrix(head, q[None])[0])),
                ("MIX", o, p, v.weighted_sum(p, head)),
            ):
                made = call(name, [numbers, out, by, cache, scales], {1: result})
                at = np.cumsum([0, 5, len(out) + 1, len(by) + 1, -(-cache.nbytes // 4) + 1])
                yield Call((made.words[0], *map(int, at[1:]), 0, 0, 0), made.before, made.after)
            x = drawn(rng, n, size)
            if kv == "f16":
                x = np.clip(x, -65519, 65519)
                yield call("STORE", [np.zeros(-(-n // 2), F), x], {0: x.astype(np.float16)}, 0, n)
            elif kv == "q8":
                vector = quantise(x[None])
                results = {0: vector.q[0], 2: vector.scales[0]}
                yield call("STORE", [np.zeros(-(-n // 4), F), x, np.zeros(1, F)], results, 0, n)


def half_calls() -> Iterator[Call]:
    """Every finite binary16 and what lies between two of them, narrowed."""
    finite = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(F)
    middle = (finite[:-1] + finite[1:]) / F(2)  # exact in binary32
    x = np.concatenate([finite, middle, np.nextafter(middle, F(0)), np.nextafter(middle, F(1e6)), [F(65519.996)]])
    for part in np.array_split(f.snap(np.concatenate([x, -x])), 8):
        yield call("STORE", [np.zeros(-(-len(part) // 2), F), part], {0: part.astype(np.float16)}, 0, len(part))
