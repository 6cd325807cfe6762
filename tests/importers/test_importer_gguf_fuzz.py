# SPDX-License-Identifier: Apache-2.0
"""Damaged GGUF files: whatever the damage, a model or one of our errors, and little memory."""

from __future__ import annotations

import contextlib
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from gguf_files import mixtral
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from colibri.errors import ColibriError
from colibri.importers import load

_TEXT = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": [chr(0x21 + i) for i in range(39)] + ['!"'],
    "tokenizer.ggml.merges": ['! "'],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.add_bos_token": True,
}


def seed() -> bytes:
    file = mixtral().with_pair("general.alignment", 64)
    for key, value in _TEXT.items():
        file = file.with_pair(key, value)
    file.alignment = 64
    return file.raw()


SEED = seed()
HEADER = SEED.index(b"output.weight") + 1500  # pairs and infos; the rest is values


@pytest.fixture(scope="module")
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "model.gguf"


def attempt(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    tracemalloc.start()
    try:
        with contextlib.suppress(ColibriError):
            load(path)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 32 << 20


SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
INTERESTING = st.sampled_from([0, 1, 2, 7, 31, 0x7F, 0x80, 0xFF])


def test_the_seed_is_a_model_with_text(path: Path) -> None:
    path.write_bytes(SEED)
    assert load(path).tokenizer_json is not None


@SETTINGS
@given(st.lists(st.tuples(st.integers(0, HEADER - 1), INTERESTING), min_size=1, max_size=4))
def test_changed_bytes(path: Path, changes: list[tuple[int, int]]) -> None:
    raw = bytearray(SEED)
    for at, value in changes:
        raw[at] = value
    attempt(path, bytes(raw))


@SETTINGS
@given(
    st.integers(0, HEADER // 4 - 2), st.sampled_from([2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**61, 1 << 40])
)
def test_large_numbers(path: Path, word: int, value: int) -> None:
    raw = bytearray(SEED)
    raw[4 * word : 4 * word + 8] = value.to_bytes(8, "little")
    attempt(path, bytes(raw))


@SETTINGS
@given(st.integers(0, HEADER), st.integers(0, HEADER), st.binary(max_size=24))
def test_cut_repeated_and_replaced_pieces(path: Path, a: int, b: int, new: bytes) -> None:
    low, high = min(a, b), max(a, b)
    for raw in (SEED[:low] + new + SEED[high:], SEED[:high] + SEED[low:], SEED[:low] + new):
        attempt(path, raw)
