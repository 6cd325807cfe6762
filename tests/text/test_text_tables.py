# SPDX-License-Identifier: Apache-2.0
"""Tables that name what they do not have are refused when they are bound; before, they were believed (found by fuzzing)."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from colibri.text.tables import tables_of
from colibri.text.tokenizer_json import rules_of

from .device_tokenizer import ROOT, DeviceTokenizer, compile_library
from .samples import KINDS

ERR_RANGE, ERR_TABLES = -26, -30
_C = (ROOT / "firmware" / "tokenizer" / "tables.h").read_text()
_HEADER = _C.split("typedef struct colibri_text_tables {")[1].split("}")[0]
WORDS = {name: i for i, name in enumerate(re.findall(r"uint32_t (\w+);", _HEADER))}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sanitize = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    return compile_library(tmp_path_factory.mktemp("tokenizer"), "gcc", ["-O1", *sanitize])


class Spoilt:
    """Tables of which words can be set."""

    def __init__(self, kind: str) -> None:
        self.raw = bytearray(tables_of(rules_of(KINDS[kind]().to_str().encode())))

    def __getitem__(self, name: str) -> int:
        return int(struct.unpack_from("<I", self.raw, 4 * WORDS[name])[0])

    def header(self, name: str, value: int) -> None:
        struct.pack_into("<I", self.raw, 4 * WORDS[name], value)

    def word(self, table: str, index: int, value: int) -> None:
        struct.pack_into("<I", self.raw, self[table] + 4 * index, value)

    def index(self, table: str, index: int, value: int) -> None:
        struct.pack_into("<H", self.raw, self[table] + 2 * index, value)

    def special_text(self, text: bytes) -> None:
        """The first special token's text begins otherwise."""
        (i,) = struct.unpack_from("<I", self.raw, self["specials"] + 32)
        (begin,) = struct.unpack_from("<I", self.raw, self["ends"] + 4 * i)
        self.raw[self["text"] + begin : self["text"] + begin + len(text)] = text


CASES: dict[str, tuple[str, Callable[[Spoilt], Any]]] = {
    "a token that ends before it begins": ("gpt2", lambda t: t.word("ends", 5, 0)),
    "a token past the text": ("gpt2", lambda t: t.word("ends", t["n_tokens"], len(t.raw))),
    "a token that begins past everything": ("gpt2", lambda t: t.word("ends", 0, 2**32 - 1)),
    "a longest token that is longer": ("gpt2", lambda t: t.header("longest_token", t["longest_token"] + 1)),
    "a longest token that wraps": ("gpt2", lambda t: t.header("longest_token", 2**32 // 3)),
    "a longest token that is shorter": ("gpt2", lambda t: t.header("longest_token", 1)),
    "a sorted token that is none": ("gpt2", lambda t: t.index("sorted", 3, t["n_tokens"])),
    "no sorted token": ("gpt2", lambda t: t.index("sorted", 3, 0xFFFF)),
    "a merge to no token": ("gpt2", lambda t: t.index("merges", 4 * 2 + 2, t["n_tokens"])),
    "a byte's token that is none": ("llama 2", lambda t: t.index("byte_ids", 65, t["n_tokens"])),
    "an unknown token that is none": ("llama 2", lambda t: t.header("unknown", t["n_tokens"])),
    "an id around that is none": ("gpt2", lambda t: t.word("around", 0, t["n_tokens"])),
    "a special token that is none": ("gpt2", lambda t: t.word("specials", 8, t["n_tokens"])),
    "a special token that is half a character": ("gpt2", lambda t: t.special_text(b"\x80")),
    "a special token of overlong UTF-8": ("gpt2", lambda t: t.special_text(b"\xc0\x80")),
    "classes that do not begin at 0": ("gpt2", lambda t: t.word("classes", 32, 1 << 8)),
    "a program past the end": ("gpt2", lambda t: t.word("splits", 1, 2**32 - 1)),
    "alternatives past the program": ("gpt2", lambda t: t.word("splits", 0, 2**31 - 1)),
    "an alternative of nine items": ("gpt2", lambda t: t.word("splits", 2, 9)),
    "an alternative of no item": ("gpt2", lambda t: t.word("splits", 2, 0)),
    "more splits than there are": ("gpt2", lambda t: t.header("n_splits", 4)),
    "a score of infinity": ("unigram", lambda t: t.word("scores", 7, 0x7F800000)),
    "a score of NaN": ("unigram", lambda t: t.word("scores", 7, 0xFFC00000)),
    "a score of 2**20": ("unigram", lambda t: t.word("scores", 7, 0x49800000)),
    "a score below 2**-40": ("unigram", lambda t: t.word("scores", 7, 1)),
    "a score beyond the unknown one": ("unigram", lambda t: t.word("scores", 7, 0x44000000)),
}


def bound(library: Path, raw: bytes) -> int:
    try:
        DeviceTokenizer(library, bytes(raw))
    except AssertionError as error:
        return int(error.args[0])
    return 0


@pytest.mark.parametrize("name", CASES)
def test_tables_that_are_wrong_in_one_place_are_refused(name: str, library: Path) -> None:
    kind, change = CASES[name]
    tables = Spoilt(kind)
    assert bound(library, tables.raw) == 0
    change(tables)
    assert bound(library, tables.raw) == ERR_TABLES


def test_a_piece_whose_sum_of_scores_may_not_be_exact_is_refused(library: Path) -> None:
    """Scores of 2**19 are 2**59 in the units of the sum: seven of them fit 63 bits."""
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": False}
    document = {
        "pre_tokenizer": space,
        "decoder": space,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -(2.0**19)]]},
    }
    device = DeviceTokenizer(library, tables_of(rules_of(json.dumps(document).encode())))
    assert device.encode("a" * 7) == [1] * 7
    with pytest.raises(ValueError, match=str(ERR_RANGE)):
        device.encode("a" * 8)
