# SPDX-License-Identifier: Apache-2.0
"""Vocabularies of GGUF files: the same ids and text as the tokenizer they were made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gguf_files import VOCAB, File, mixtral

from colibri.errors import CheckpointError
from colibri.importers import load
from colibri.model import Model
from colibri.text.pretokenizers import PRETOKENIZERS
from colibri.text.tokenizer_json import rules_of
from colibri.tokenizer import Tokenizer

CONTROL, BYTE, NORMAL, UNKNOWN = 3, 6, 1, 2
# byte-level: space is written Ġ
LETTERS = ["Ġ", *"abcdehlnortuwy", "'", "s", "1", "2", "3", "."]
MERGED = ["he", "ll", "hell", "hello", "Ġw", "or", "Ġwor", "ld", "Ġworld", "12"]
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld", "1 2"]
BYTE_LEVEL = ["<s>", "</s>", *LETTERS, *MERGED]
BYTE_LEVEL += [f"x{i}" for i in range(VOCAB - len(BYTE_LEVEL))]


def with_text(file: File, **values: Any) -> File:
    for key, value in values.items():
        file = file.with_pair(f"tokenizer.ggml.{key}", value)
    return file


def byte_level(pre: str = "gpt-2", **values: Any) -> File:
    kinds = [CONTROL, CONTROL, *[NORMAL] * (VOCAB - 2)]
    given = {"model": "gpt2", "pre": pre, "tokens": BYTE_LEVEL, "token_type": kinds, "merges": MERGES}
    return with_text(mixtral(), **{**given, "bos_token_id": 0, "eos_token_id": 1, **values})


def scored(**values: Any) -> File:
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        "<0x0A>",
        "\u2581",
        *"helowrd",
        "he",
        "ll",
        "hell",
        "hello",
        "\u2581w",
        "or",
        "\u2581wor",
    ]
    pieces += [f"x{i}" for i in range(VOCAB - len(pieces))]
    scores = [0.0] * 12 + [-float(i) for i in range(VOCAB - 12)]
    kinds = [UNKNOWN, CONTROL, CONTROL, BYTE, *[NORMAL] * (VOCAB - 4)]
    given = {"model": "llama", "tokens": pieces, "scores": scores, "token_type": kinds}
    return with_text(mixtral(), **{**given, "bos_token_id": 1, "eos_token_id": 2, **values})


def loaded(folder: Path, file: File) -> Model:
    path = folder / "model.gguf"
    path.write_bytes(file.raw())
    return load(path)


def encoded(model: Model, text: str) -> list[str]:
    assert model.tokenizer_json is not None
    names = {i: t for t, i in json.loads(model.tokenizer_json)["model"]["vocab"].items()}
    return [names[i] for i in Tokenizer(model.tokenizer_json, "tokenizer").encode(text)]


def test_byte_level_merges(tmp_path: Path) -> None:
    model = loaded(tmp_path, byte_level())
    assert (model.config.bos_id, model.config.eos_ids) == (0, (1,))
    assert encoded(model, "hello world") == ["hello", "Ġworld"]
    assert encoded(model, "hell 123</s>") == ["hell", "Ġ", "12", "3", "</s>"]
    assert model.tokenizer_json is not None
    tokenizer = Tokenizer(model.tokenizer_json, "tokenizer")
    assert tokenizer.decode(tokenizer.encode("hello world. hello's")) == "hello world. hello's"


def test_begin_and_end_are_added_where_the_file_says_so(tmp_path: Path) -> None:
    assert encoded(loaded(tmp_path, byte_level(add_bos_token=True)), "hello") == ["<s>", "hello"]
    assert encoded(loaded(tmp_path, byte_level(add_eos_token=True)), "hello") == ["hello", "</s>"]
    assert encoded(loaded(tmp_path, byte_level("llama-bpe")), "hello") == ["<s>", "hello"]
    assert encoded(loaded(tmp_path, byte_level("llama-bpe", add_bos_token=False)), "hello") == ["hello"]
    assert loaded(tmp_path, byte_level(eot_token_id=5)).config.eos_ids == (1, 5)


def test_pre_tokenizers_cut_differently(tmp_path: Path) -> None:
    """Digits one by one; then a word that is a token but that no merges make."""
    assert encoded(loaded(tmp_path, byte_level("qwen2")), "12") == ["1", "2"]
    assert encoded(loaded(tmp_path, byte_level("gpt-2")), "12") == ["12"]
    shorter = byte_level("dbrx", merges=MERGES[:2])
    assert encoded(loaded(tmp_path, shorter), "hello") == ["he", "ll", "o"]
    assert encoded(loaded(tmp_path, byte_level("llama-bpe", merges=MERGES[:2], add_bos_token=False)), "hello") == [
        "hello"
    ]


@pytest.mark.parametrize("name", PRETOKENIZERS)
def test_every_pre_tokenizer_is_one_that_the_device_takes_or_says_why(name: str, tmp_path: Path) -> None:
    raw = loaded(tmp_path, byte_level(name)).tokenizer_json
    assert raw is not None
    Tokenizer(raw, name).encode("It's 1234 o'clock,\r\n  isn't it?  \n")
    assert rules_of(raw).splits


def test_sentencepiece_scores(tmp_path: Path) -> None:
    model = loaded(tmp_path, scored())
    assert encoded(model, "hello wor") == ["<s>", "\u2581", "hello", "\u2581wor"]
    plain = loaded(tmp_path, scored(add_bos_token=False, add_space_prefix=False))
    assert encoded(plain, "hello\n") == ["hello", "<0x0A>"]


def test_a_vocabulary_of_an_unknown_kind_leaves_ids_and_says_so(tmp_path: Path) -> None:
    for file, reason in (
        (byte_level("default"), "the pre-tokenizer 'default'"),
        (byte_level().without("tokenizer.ggml.pre"), "the pre-tokenizer 'default'"),
        (byte_level(model="t5"), "a vocabulary of kind 't5'"),
        (
            byte_level(tokens=["a", "a", *BYTE_LEVEL[2:]]),
            "a vocabulary with an empty piece, or one that is there twice",
        ),
        (byte_level(merges=["h e l"]), "a merge that is not of two pieces"),
        (byte_level(merges=["h w"]), "that the vocabulary does not have"),
    ):
        model = loaded(tmp_path, file)
        assert model.tokenizer_json is None
        assert reason in model.skipped["tokenizer"]
        assert "takes and gives ids" in model.skipped["tokenizer"]
        assert model.config.bos_id == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"tokens": BYTE_LEVEL[:-1]}, "tokens: expected 40 tokens"),
        ({"token_type": [1] * 39}, "token_type: expected 40 values"),
        ({"token_type": [9] * 40}, "token_type: expected an integer from 1 to 6"),
        ({"scores": [0.5] * 39}, "scores: expected 40 values"),
        ({"scores": [float("nan")] * 40}, "scores: expected an array of finite numbers"),
        ({"bos_token_id": 40}, "bos_token_id: expected an integer from 0 to 39"),
        ({"merges": [1, 2]}, "merges: expected an array of strings"),
        ({"tokens": [1] * 40}, "tokens: expected an array of strings"),
        ({"tokens": "abc"}, "tokens: expected an array of strings"),
        ({"scores": [1] * 40}, "scores: expected an array of finite numbers"),
        ({"token_type": [1.0] * 40}, "token_type: expected an integer"),
        ({"pre": 3}, "pre: expected a value of type STRING"),
        ({"add_bos_token": 1}, "add_bos_token: expected a value of type BOOL"),
    ],
)
def test_a_vocabulary_that_contradicts_the_model_is_refused(
    values: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match=expected):
        loaded(tmp_path, byte_level(**values))
