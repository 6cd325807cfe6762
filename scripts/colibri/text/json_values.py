# SPDX-License-Identifier: Apache-2.0
"""Values of a tokenizer.json, which may be anything JSON can say: each of the type that is meant, or Unsupported."""

from __future__ import annotations

import json
from typing import Any

from colibri.text.rules import Unsupported

MAX_TOKENS = 1 << 21
MAX_SCORE = 2**20
_SCORE_UNIT = 2.0**-40


def document(raw: bytes) -> dict[str, Any]:
    """The object that a file is."""
    try:
        value = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # also of other bytes than UTF-8, and of thousands of digits
        raise Unsupported(f"a file that is no JSON: {error}") from None
    return dict_of(value, "the file")


def dict_of(value: Any, what: str) -> dict[str, Any]:
    """An object."""
    if not isinstance(value, dict):
        raise Unsupported(f"{what} that is no object")
    return value


def list_of(value: Any, what: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise Unsupported(f"{what} that is no list")
    return value


def text_of(value: Any, what: str) -> str:
    """A string of whole characters."""
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        raise Unsupported(f"{what} that is no text")
    return value


def id_of(value: Any) -> int:
    """A token's id."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MAX_TOKENS:
        raise Unsupported(f"an id that is {str(value)[:20]}")
    return value


def score_of(value: Any) -> float:
    """A score that sums are exact of."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not -MAX_SCORE < value < MAX_SCORE or value % _SCORE_UNIT:
        raise Unsupported("a score that is not a multiple of 2**-40 within 2**20")
    return float(value)


def scored_of(value: Any) -> tuple[str, float]:
    """An entry of a Unigram vocabulary: a text and its score."""
    entry = list_of(value, "an entry of the vocabulary")
    if len(entry) != 2:
        raise Unsupported("an entry of the vocabulary that is not a text and a score")
    return text_of(entry[0], "a token"), score_of(entry[1])


def merge_of(value: Any) -> tuple[str, str]:
    """A merge: two texts, in a list or with a space between."""
    pair = value.split(" ") if isinstance(value, str) else value
    if not isinstance(pair, list) or len(pair) != 2:
        raise Unsupported("a merge that is not of two pieces")
    return text_of(pair[0], "a piece"), text_of(pair[1], "a piece")


def kind_of(part: dict[str, Any]) -> str:
    """A part's type as messages show it."""
    return str(part.get("type"))[:40]


def sequence_of(part: Any, key: str) -> list[dict[str, Any]]:
    """The parts of a normalizer, pre-tokenizer and so on: none, one, or a Sequence of them; `key`: what a Sequence calls them."""
    if part is None:
        return []
    one = dict_of(part, key)
    if one.get("type") == "Sequence":
        return [inner for p in list_of(one.get(key), key) for inner in sequence_of(p, key)]
    return [one]
