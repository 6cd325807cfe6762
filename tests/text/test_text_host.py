# SPDX-License-Identifier: Apache-2.0
"""Whatever the tokenizers package says to a file, or dies of, is one of our errors (found by fuzzing)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from colibri.errors import CheckpointError
from colibri.tokenizer import Tokenizer, _as_ours


def raw(**model: Any) -> bytes:
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model}).encode()


BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"\xff",
        b"[]",
        raw(type="WordPiece"),
        raw(**BPE, continuing_subword_prefix="####"),  # the package panics: it cuts more off a token than it has
    ],
)
def test_a_file_that_the_package_does_not_read_is_refused(file: bytes) -> None:
    with pytest.raises(CheckpointError) as caught:
        Tokenizer(file, "tokenizer.json")
    assert str(caught.value).isprintable()
    assert caught.value.got
    assert caught.value.hint


def test_a_text_that_the_package_cannot_encode_is_refused() -> None:
    tokenizer = Tokenizer(raw(type="WordLevel", vocab={"a": 0}, unk_token="<unk>"), "tokenizer.json")
    with pytest.raises(CheckpointError, match="encodes a text"):
        tokenizer.encode("b")


def test_not_everything_that_is_no_exception_is_a_panic() -> None:
    with pytest.raises(KeyboardInterrupt), _as_ours("tokenizer.json", "a text"):
        raise KeyboardInterrupt
