# SPDX-License-Identifier: Apache-2.0
"""The fuzzers of the tokenizers find nothing in twenty seconds each. A file of its own, so that another core runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import harness
from .run import TARGETS, fuzzed

SECONDS = 20
TEXT = [target for target in TARGETS if target.startswith("tokenizer_")]


def finds_nothing(target: str, folder: Path) -> None:
    if target in harness.TARGETS:
        pytest.importorskip("atheris", reason="atheris is built for x86-64 Linux only")
    outcome = fuzzed(target, SECONDS, folder)
    assert outcome.finding is None, str(outcome)
    assert outcome.runs > 100  # the seeds
    assert outcome.coverage > 40


@pytest.mark.fuzz
@pytest.mark.parametrize("target", TEXT)
def test_nothing_is_found(target: str, tmp_path: Path) -> None:
    finds_nothing(target, tmp_path)
