# SPDX-License-Identifier: Apache-2.0
"""Matrices and vectors that reach every corner of a kernel, and what docs/NUMERICS.md 5 says the product is, in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from colibri.quantise import Format, Stored
from colibri_sim.golden.fma import fma

from .program import UNWRITTEN, Case, F, F32Array

SEGMENT_COLS = (511, 512, 513, 518, 519, 520, 521, 1024, 1040, 1536, 2048)
FORMATS = ("q8", "q8:32", "q8:64", "q8:128", "q4:32", "q4:64", "q4:128", "q4:row")


def format_of(spec: str) -> Format:
    kind, _, group = spec.partition(":")
    return Format(kind, 0 if group in ("", "row") else int(group))  # type: ignore[arg-type]


def stored(spec: str, q: np.ndarray, scales: np.ndarray, multipliers: np.ndarray | None = None) -> Stored:
    return Stored(spec, format_of(spec), *q.shape, q.astype(np.int8), scales.astype(F), multipliers)


def drawn(
    rng: np.random.Generator, spec: str, rows: int, cols: int, *, extreme: bool = False, s: float = 0.01
) -> Stored:
    """Random elements, or the largest ones with random signs; scales around s."""
    form = format_of(spec)
    top, groups = (7 if form.kind == "q4" else 127), form.groups(cols)
    q = rng.choice([-top, top], (rows, cols)) if extreme else rng.integers(-top, top + 1, (rows, cols))
    scales = s * 2.0 ** rng.uniform(-1, 1, (rows, 1 if form.kind == "q4" else groups))
    if form.kind != "q4":
        return stored(spec, q, scales)
    low = 255 if extreme else 1
    return stored(spec, q, scales, rng.integers(low, 256, (rows, groups)).astype(np.uint8))


def all_ranges(rows: int) -> tuple[tuple[int, int], ...]:
    return tuple(itertools.combinations(range(rows + 1), 2))


def whole(rows: int) -> tuple[tuple[int, int], ...]:
    return ((0, rows),)


def cases(spec: str) -> Iterator[Case]:
    rng = np.random.default_rng(len(spec) * 1000 + sum(map(ord, spec)))

    def x(n: int) -> F32Array:
        values = rng.standard_normal(n).astype(F)
        values[rng.random(n) < 0.1] = 0
        return values

    for cols in range(1, 65):
        rows = 1 + cols % 9
        yield Case(drawn(rng, spec, rows, cols), x(cols), whole(rows))
        yield Case(drawn(rng, spec, rows, cols, extreme=True), rng.choice([F(-1), F(1)], cols), whole(rows))
    for rows, cols in ((9, 40), (9, 77), (9, 520), (6, 5)):
        yield Case(drawn(rng, spec, rows, cols), x(cols), all_ranges(rows))
    for cols in SEGMENT_COLS:
        yield Case(drawn(rng, spec, 5, cols), x(cols), whole(5))
        for sign in (1, -1):  # the largest sums there are
            largest = drawn(rng, spec, 4, cols, extreme=True)
            positive = Stored(spec, largest.format, 4, cols, np.abs(largest.data), largest.scales, largest.multipliers)
            yield Case(positive, np.full(cols, sign, F), whole(4))
    for n, exponent in enumerate(np.arange(-44.0, -36.0, 0.25)):  # results around 2**-40, where snap cuts
        tiny = drawn(rng, spec, 8, 33 + n, s=2.0**exponent / (255 * 7 if spec.startswith("q4") else 127))
        yield Case(tiny, rng.choice([F(-1), F(0.01), F(1)], 33 + n), whole(8))
    for scale in (0.0, 2.0**-40, 2.0**-126, 2.0**-149, 2.0**60):
        still = drawn(rng, spec, 4, 20, extreme=True, s=1.0)
        assert still.scales is not None
        scales = np.full(still.scales.shape, scale, F)
        yield Case(Stored(spec, still.format, 4, 20, still.data, scales, still.multipliers), x(20), whole(4))
    yield Case(drawn(rng, spec, 5, 40), np.zeros(40, F), whole(5))
    yield Case(drawn(rng, spec, 5, 40), np.full(40, 2.0**-34, F), whole(5))
    if spec.startswith("q4"):
        largest = drawn(rng, spec, 4, 8192, extreme=True)
        positive = Stored(
            spec, largest.format, 4, 8192, np.full((4, 8192), 7, np.int8), largest.scales, largest.multipliers
        )
        yield Case(positive, np.ones(8192, F), whole(4))
        yield Case(drawn(rng, spec, 4, 8191), x(8191), whole(4))
    elif spec == "q8":
        yield Case(stored(spec, np.full((4, 16384), -127), np.ones((4, 1))), np.ones(16384, F), whole(4))


def widened(spec: str) -> Iterator[Case]:
    rng = np.random.default_rng(7)
    for rows, cols in ((7, 1), (5, 31), (6, 64), (9, 130), (3, 600)):
        rows_of = tuple((r, r) for r in range(rows))
        yield Case(drawn(rng, spec, rows, cols), None, rows_of)
        yield Case(drawn(rng, spec, rows, cols, extreme=True, s=2.0**-45), None, rows_of)


def snap(values: F32Array) -> F32Array:
    return np.where(np.abs(values) < F(2.0**-40), F(0), values).astype(F)


def quantised(x: F32Array) -> tuple[np.ndarray, np.float32]:
    amax = np.abs(x).max()
    if amax < F(2.0**-33):
        return np.zeros(len(x), np.int64), F(0)
    return np.rint(x * (F(127) / amax)).astype(np.int64), F(amax / F(127))


def expected(case: Case) -> list[F32Array]:
    """For each range: every row of it, exact integer sums, and 99 elsewhere."""
    m, x = case.stored, case.x
    assert m.scales is not None
    if x is None:
        values = m.values()
        return [np.concatenate(([UNWRITTEN], values[row], [UNWRITTEN])).astype(F) for row, _ in case.ranges]
    q = m.data.astype(np.int64)
    group = m.format.group or m.cols
    spans = [slice(begin, begin + group) for begin in range(0, m.cols, group)]
    with np.errstate(under="ignore", over="ignore"):
        if m.format.kind == "q8" and m.format.group:
            y = np.zeros(m.rows, F)
            for g, span in enumerate(spans):
                xq, xs = quantised(x[span])
                y = fma((q[:, span] @ xq).astype(F), m.scales[:, g] * xs, y)
        else:
            xq, xs = quantised(x)
            factors = (
                np.ones((m.rows, len(spans)), np.int64) if m.multipliers is None else m.multipliers.astype(np.int64)
            )
            total = sum(factors[:, g] * (q[:, span] @ xq[span]) for g, span in enumerate(spans))
            assert np.abs(total).max() < 2**31
            y = np.asarray(total).astype(F) * (m.scales[:, 0] * xs)
    y = snap(y)
    out = []
    for begin, end in case.ranges:
        full = np.full(m.rows + 2, UNWRITTEN, F)
        full[1 + begin : 1 + end] = y[begin:end]
        out.append(full)
    return out
