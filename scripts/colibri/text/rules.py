# SPDX-License-Identifier: Apache-2.0
"""A tokenizer as data, whatever file it came from. Tokens are bytes; U+2581, SentencePiece's visible space, is a space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from colibri.text.pattern import Alternative

VISIBLE_SPACE = "\u2581"
Prefix = Literal["none", "always", "unless_space", "first_unless_space"]


class Unsupported(ValueError):
    """A tokenizer that these rules cannot express; says what of it."""


@dataclass(frozen=True)
class Merge:
    """Two tokens that become one. Of all that are possible the one with the lowest rank goes first, the leftmost of equals."""

    left: int
    right: int
    merged: int
    rank: int


@dataclass(frozen=True)
class Bpe:
    """Byte-pair encoding.

    merges         one for a pair
    whole_words    a piece that is a token is not taken apart (`ignore_merges`)
    """

    merges: tuple[Merge, ...]
    whole_words: bool = False


@dataclass(frozen=True)
class Unigram:
    """The segmentation of a piece with the largest sum of scores.

    scores  log-probability of each token, each a multiple of 2**-40 above -2**20, so that sums are exact in integers
    """

    scores: tuple[float, ...]


@dataclass(frozen=True)
class Split:
    """A stage of pre-tokenization: each piece of the stage before is cut at the matches of a pattern.

    removed  matches are dropped; otherwise they and what is between them are pieces
    """

    pattern: tuple[Alternative, ...]
    removed: bool = False


@dataclass(frozen=True)
class Special:
    """A token that is found in the text as it stands, before anything else.

    hidden      it gives no text when decoded (`special` in tokenizer.json)
    normalized  it is looked for in the normalised text
    left, right it takes the white space on that side with it
    """

    id: int
    text: bytes
    hidden: bool
    normalized: bool = False
    left: bool = False
    right: bool = False


@dataclass(frozen=True)
class Rules:
    """Everything between text and ids.

    tokens       bytes of each id; a token of byte fallback is written <0x41>; None: no token
    hidden       ids that decode to nothing
    added        ids that only a Special finds
    spaces       U+2581 in the text is a space too
    by_bytes     symbols before merging are bytes (byte-level), otherwise characters
    byte_ids     ids of the 256 bytes, None for those that have none
    byte_fallback characters without a token become their bytes;  byte_tokens: byte_ids decode to bytes
    nfc          the text is put into Unicode normalisation form C first
    unknown      id of what has no token; None: it is left out
    fuse_unknown neighbouring unknown characters are one
    prefix       a space is put before the text: always (a normalizer does it, before normalised specials are looked for), unless
                 it begins with one, or so for the start of the whole text only (a pre-tokenizer does it, after them)
    before, after ids around every text (BOS, EOS)
    strip        spaces dropped from decoded text: one at its start, or all of the first token
    """

    tokens: tuple[bytes | None, ...]
    model: Bpe | Unigram
    by_bytes: bool
    hidden: frozenset[int] = frozenset()
    added: frozenset[int] = frozenset()
    spaces: bool = False
    byte_ids: tuple[int | None, ...] | None = None
    byte_fallback: bool = False
    byte_tokens: bool = False
    nfc: bool = False
    unknown: int | None = None
    fuse_unknown: bool = False
    prefix: Prefix = "none"
    splits: tuple[Split, ...] = ()
    specials: tuple[Special, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    strip: Literal["none", "one", "first_token"] = "none"
