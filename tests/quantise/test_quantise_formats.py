# SPDX-License-Identifier: Apache-2.0
"""What is stored is what docs/NUMERICS.md 5 says, to the bit, and never further than half a step from its source."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.errors import CheckpointError
from colibri.model import F32Array
from colibri.quantise import Stored, parse_format, store

from . import scalar
from .sources import FORMATS, KINDS, SHAPES, matrix, tensor


def stored(values: F32Array, format_: str) -> Stored:
    return store(tensor(values), parse_format(format_))


def in_range(kind: str, format_: str) -> bool:
    return not (format_ == "f16" and kind in ("huge", "uneven rows"))


def check_exactly(values: F32Array, format_: str) -> None:
    """Every stored number and every value used equals the scalar implementation's."""
    got = stored(values, format_)
    used = got.values()
    assert used.dtype == np.float32
    assert (got.rows, got.cols) == values.shape
    for r, source in enumerate(values.tolist()):
        row = [scalar.snap(w) for w in source]
        if format_ == "f32":
            assert [scalar.bits(x) for x in got.data[r].tolist()] == [scalar.bits(w) for w in row]
            expected = row
        elif format_ in ("bf16", "f16"):
            narrow, widen = {"bf16": (scalar.bf16, scalar.widen_bf16), "f16": (scalar.f16, scalar.widen_f16)}[format_]
            words = [narrow(w) for w in row]
            assert got.data[r].tolist() == words
            expected = [widen(word) for word in words]
        else:
            want = (scalar.q8 if format_.startswith("q8") else scalar.q4)(row, got.format.group)
            assert got.scales is not None
            assert got.data[r].tolist() == want.q
            assert got.scales[r].tolist() == want.scales
            if want.multipliers:
                assert got.multipliers is not None
                assert got.multipliers[r].tolist() == want.multipliers
            expected = [want.value(i) for i in range(len(row))]
        assert [scalar.bits(x) for x in used[r].tolist()] == [scalar.bits(x) for x in expected]


def steps(s: Stored) -> F32Array:
    """The step at each element, float64 [rows, cols]."""
    assert s.scales is not None
    step = s.scales.astype(np.float64)
    if s.multipliers is not None:
        step = step * s.multipliers
    width = s.format.group or s.cols
    return np.repeat(step, width, axis=1)[:, : s.cols]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_stored_numbers_are_those_of_the_page(kind: str, format_: str) -> None:
    if not in_range(kind, format_):
        pytest.skip("f16 refuses these values: test_f16_refuses_what_it_cannot_hold")
    for rows, cols in SHAPES:
        check_exactly(matrix(kind, rows, cols), format_)


@pytest.mark.parametrize("format_", [f for f in FORMATS if f.startswith("q")])
@pytest.mark.parametrize("kind", KINDS)
def test_integer_weights_are_within_half_a_step(kind: str, format_: str) -> None:
    """Half a step, and what one float32 rounding of the scale and one of the product add (the page: `snap(f32(q) * s)`)."""
    for rows, cols in SHAPES:
        w = scalar_snap(matrix(kind, rows, cols, seed=1))
        s = stored(w, format_)
        step = steps(s)
        error = np.abs(s.data * step - w)
        largest = 7 if format_.startswith("q4") else 127
        assert np.all(error[step > 0] <= (0.5 + largest * 2.0**-24) * step[step > 0])
        # scale 0: all of it is below what the arithmetic tells from zero
        assert np.all(np.abs(w[step == 0]) < 2.0**-28)
        assert np.all(np.abs(s.values() - s.data * step) <= np.maximum(np.abs(w) * 2.0**-22, 2.0**-40))
        if format_.startswith("q8"):
            assert np.all(np.abs(w[step == 0]) < 2.0**-33)


def scalar_snap(w: F32Array) -> F32Array:
    return np.where(np.abs(w) < 2.0**-40, np.float32(0), w)


@pytest.mark.parametrize("format_", FORMATS)
def test_scales_are_zero_or_large_enough_for_the_contract(format_: str) -> None:
    """NUMERICS 2 (d) and 3: {0} and [2**-40, 2**44]; values snapped, below 2**50."""
    for kind in KINDS:
        if in_range(kind, format_):
            s = stored(matrix(kind, 4, 100, seed=2), format_)
            used = s.values()
            magnitude = used.view(np.uint32) & 0x7FFFFFFF
            assert np.all((used.view(np.uint32) == 0) | ((magnitude >= 0x2B800000) & (magnitude < 0x58800000)))
            if s.scales is not None:
                assert np.all((s.scales == 0) | ((s.scales >= 2.0**-40) & (s.scales <= 2.0**44)))


@pytest.mark.parametrize("format_", FORMATS)
def test_negative_zero_becomes_positive_zero(format_: str) -> None:
    s = stored(np.array([[-0.0, 1.0, -1e-30, -(2.0**-41)]], dtype=np.float32), format_)
    assert s.values()[0].view(np.uint32).tolist() == [0, 0x3F800000, 0, 0]


WEIGHT = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**49), max_value=2.0**49)


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(WEIGHT, min_size=1, max_size=70), st.sampled_from([f for f in FORMATS if f != "f16"]))
def test_any_row_is_stored_as_the_page_says(row: list[float], format_: str) -> None:
    check_exactly(np.array([row], dtype=np.float32), format_)


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(st.floats(width=32, min_value=-65519.0, max_value=65519.0), min_size=1, max_size=40))
def test_any_row_of_f16_is_stored_as_the_page_says(row: list[float]) -> None:
    check_exactly(np.array([row], dtype=np.float32), "f16")


@settings(max_examples=100, deadline=None, database=None)
@given(st.integers(0, 0xFFFF), st.sampled_from([-1, 0, 1]))
def test_bf16_ties_go_to_even(high: int, step: int) -> None:
    word = (high << 16 | 0x8000) + step
    value = scalar.from_bits(word)
    if math.isfinite(value) and abs(value) < 2.0**49:
        check_exactly(np.array([[value]], dtype=np.float32), "bf16")


def refused(value: float, format_: str) -> CheckpointError:
    w = np.zeros((3, 5), dtype=np.float32)
    w[1, 4] = value
    with pytest.raises(CheckpointError) as caught:
        stored(w, format_)
    return caught.value


@pytest.mark.parametrize("value", [65520.0, -65520.0, 1e6, 2.0**49])
def test_f16_refuses_what_it_cannot_hold(value: float) -> None:
    error = refused(value, "f16")
    assert str(error) == (f"file: t: element (1, 4): expected a magnitude below 65520, the range of f16, got {value!r}")
    assert error.exit_code == 3


def test_f16_takes_the_largest_value_that_rounds_into_its_range() -> None:
    below = np.nextafter(np.float32(65520), np.float32(0))
    assert stored(np.array([[below]], dtype=np.float32), "f16").values()[0, 0] == 65504.0


def test_bf16_refuses_what_would_round_up_to_the_limit() -> None:
    largest = float(np.nextafter(np.float32(2.0**50), np.float32(0)))
    for value in (largest, -largest):
        assert "below 2**50 once rounded to bf16" in str(refused(value, "bf16"))
    kept = scalar.from_bits((scalar.bits(2.0**50) - 0x10000) | 0x7FFF)
    assert stored(np.array([[kept]], dtype=np.float32), "bf16").values()[0, 0] < 2.0**50


def test_q4_refuses_rows_whose_accumulator_could_overflow() -> None:
    assert stored(np.zeros((1, 8192), dtype=np.float32), "q4").cols == 8192
    with pytest.raises(CheckpointError, match="at most 8192 columns for q4, got 8193"):
        stored(np.zeros((1, 8193), dtype=np.float32), "q4")


def test_q4_row_of_the_largest_numbers_fits_an_int32() -> None:
    assert 255 * 7 * 127 * 8192 < 2**31 <= 255 * 7 * 127 * 16384


def test_q4_clips_nothing() -> None:
    """ceil: a multiplier rounded down would clip the group's largest weight."""
    for seed in range(20):
        w = matrix("uneven columns", 4, 160, seed=seed)
        s = stored(w, "q4")
        assert np.all(np.abs(w) <= (7.0 + 1e-5) * steps(s) + 2.0**-40)


def test_a_vector_is_one_row() -> None:
    s = stored(np.arange(5, dtype=np.float32), "f32")
    assert (s.rows, s.cols, s.data.shape) == (1, 5, (1, 5))


def test_hash_is_of_the_canonical_form_and_sees_everything() -> None:
    import hashlib

    w = matrix("normal", 2, 40)
    s = stored(w, "q4")
    assert s.scales is not None
    assert s.multipliers is not None
    text = b"q4:32 2 40\n" + s.data.tobytes() + s.scales.astype("<f4").tobytes() + s.multipliers.tobytes()
    assert s.sha256() == hashlib.sha256(text).hexdigest()
    seen = {stored(w, f).sha256() for f in FORMATS} | {stored(w.reshape(4, 20), "f32").sha256()}
    assert len(seen) == len(FORMATS) + 1
