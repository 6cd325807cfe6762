# SPDX-License-Identifier: Apache-2.0
"""A checkpoint's tokenizer for the device: its tables, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from colibri.text.rules import Bpe, Rules, Unsupported
from colibri.text.tables import tables_of
from colibri.text.tokenizer_json import rules_of

Algorithm = Literal["bytes", "characters", "unigram"]
"""BPE of bytes, BPE of characters, or the unigram model: what the cost of a character depends on most."""


@dataclass(frozen=True)
class DeviceTokenizer:
    """A tokenizer as the device reads it.

    tables         for `colibri_tokenizer_init`; None: `reason` says what of the tokenizer they cannot express
    longest_bytes  of a token
    nfc            whether a text is normalised first, which may triple it
    """

    tables: bytes | None
    reason: str | None = None
    algorithm: Algorithm = "bytes"
    longest_bytes: int = 0
    nfc: bool = False


@lru_cache(maxsize=1)  # plan and pack ask for the same
def for_device(tokenizer_json: bytes) -> DeviceTokenizer:
    """The tables of a tokenizer.json. What the device cannot do the host still does."""
    try:
        rules = rules_of(tokenizer_json)
        tables = tables_of(rules)
    except Unsupported as error:
        return DeviceTokenizer(None, str(error))
    longest = max((len(token or b"") for token in rules.tokens), default=0)
    return DeviceTokenizer(tables, None, _algorithm(rules), longest, rules.nfc)


def _algorithm(rules: Rules) -> Algorithm:
    if not isinstance(rules.model, Bpe):
        return "unigram"
    return "bytes" if rules.by_bytes else "characters"
