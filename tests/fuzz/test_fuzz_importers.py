# SPDX-License-Identifier: Apache-2.0
"""The fuzzers of the host's readers and of the engine find nothing in twenty seconds each; and the harness can fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from colibri.errors import CheckpointError

from . import harness
from .choices import Choices
from .run import TARGETS, TESTS
from .test_fuzz_text import TEXT, finds_nothing

OTHERS = [target for target in TARGETS if target not in TEXT]


@pytest.mark.fuzz
@pytest.mark.parametrize("target", OTHERS)
def test_nothing_is_found(target: str, tmp_path: Path) -> None:
    finds_nothing(target, tmp_path)


def test_every_target_has_a_file() -> None:
    own = Path(__file__).parent
    assert sorted(path.stem.removeprefix("target_") for path in own.glob("target_*.py")) == sorted(harness.TARGETS)
    assert sorted(path.stem for path in (own / "c").glob("*.c")) == sorted(set(TARGETS) - set(harness.TARGETS))


def good(c: Choices, folder: Path) -> None:
    (folder / "model.bin").write_bytes(b"x")
    raise CheckpointError("model.bin", expected="more", got="little", hint="give more")


def other_error(c: Choices, folder: Path) -> None:
    raise ValueError("a bug")


def without_hint(c: Choices, folder: Path) -> None:
    raise CheckpointError("model.bin", expected="more", got="little", hint="")


def unprintable(c: Choices, folder: Path) -> None:
    raise CheckpointError("model.bin", expected="more", got="\x1b[31m", hint="give more")


def left_behind(c: Choices, folder: Path) -> None:
    (folder.parent / "beside").write_bytes(b"x")


@pytest.mark.parametrize(
    ("one", "error"),
    [
        (other_error, ValueError),
        (without_hint, AssertionError),
        (unprintable, AssertionError),
        (left_behind, AssertionError),
    ],
)
def test_what_must_hold_is_seen_not_to(one: Callable[..., None], error: type[Exception], tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    harness.holds(good, b"", tmp_path / "good")
    (tmp_path / "bad").mkdir()
    with pytest.raises(error):
        harness.holds(one, b"", tmp_path / "bad")


def test_a_length_that_is_believed_is_a_memory_error() -> None:
    program = "from fuzz.harness import *; limit_memory(MEMORY_BYTES); bytes(1 << 20); bytes(MEMORY_BYTES + (32 << 20))"
    ended = subprocess.run([sys.executable, "-c", program], cwd=TESTS, capture_output=True, text=True, check=False)
    assert ended.stderr.strip().endswith("MemoryError")
