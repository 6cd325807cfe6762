# SPDX-License-Identifier: Apache-2.0
"""SentencePiece vocabularies as rules: pieces with scores (tokenizer.model, tokenizer.bin of llama2.c, `llama` in GGUF)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from colibri.text.pattern import parse
from colibri.text.rules import VISIBLE_SPACE, Bpe, Merge, Prefix, Rules, Special, Split, Unigram, Unsupported


UNKNOWN_TEXT = " \u2047 "
"""What SentencePiece writes for the unknown token."""


class Kind(IntEnum):
    """What a piece is, in the numbers of sentencepiece_model.proto (and of GGUF's token_type)."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class Piece:
    """One entry. text with U+2581 for a space."""

    text: str
    score: float
    kind: Kind = Kind.NORMAL


def rules_of_pieces(
    pieces: Sequence[Piece], *, unigram: bool, prefix: bool, before: tuple[int, ...] = (), after: tuple[int, ...] = ()
) -> Rules:
    """Rules with byte fallback where there are byte pieces, and no normalisation but that of spaces.

    prefix  a space is put before the text (`add_dummy_prefix`)
    """
    tokens = tuple(_bytes(piece) for piece in pieces)
    unknown = next((i for i, p in enumerate(pieces) if p.kind is Kind.UNKNOWN), None)
    by_byte = {int(p.text[3:5], 16): i for i, p in enumerate(pieces) if p.kind is Kind.BYTE}
    found = frozenset(i for i, p in enumerate(pieces) if p.kind in (Kind.NORMAL, Kind.USER_DEFINED))
    model = Unigram(tuple(p.score for p in pieces)) if unigram else Bpe(merges_of_scores(tokens, pieces, found))
    splits = (Split(parse(" *[^ ]+| +")),) if not unigram and splits_at_spaces(tokens) else ()
    put: Prefix = "always" if prefix else "none"
    specials = tuple(
        Special(i, tokens[i] or b"", hidden=p.kind is Kind.CONTROL, normalized=p.kind is Kind.USER_DEFINED)
        for i, p in enumerate(pieces)
        if p.kind in (Kind.CONTROL, Kind.USER_DEFINED) and p.text
    )
    return Rules(
        tokens=tokens,
        model=model,
        by_bytes=False,
        hidden=frozenset(i for i, p in enumerate(pieces) if p.kind is Kind.CONTROL),
        added=frozenset(range(len(pieces))) - found,
        spaces=True,
        byte_ids=tuple(by_byte.get(b) for b in range(256)) if by_byte else None,
        byte_fallback=bool(by_byte),
        byte_tokens=bool(by_byte),
        unknown=unknown,
        fuse_unknown=True,
        prefix=put,
        splits=splits,
        specials=specials,
        before=before,
        after=after,
        strip="one" if prefix else "none",
    )


def merges_of_scores(
    tokens: Sequence[bytes | None], pieces: Sequence[Piece], found: frozenset[int]
) -> tuple[Merge, ...]:
    """Every pair of tokens that make a token; the higher its score, the earlier (Kudo and Richardson 2018)."""
    by_bytes = {token: i for i, token in enumerate(tokens) if token and i in found}
    ranks = {score: rank for rank, score in enumerate(sorted({p.score for p in pieces}, reverse=True))}
    merges = []
    for token, i in by_bytes.items():
        for cut in range(1, len(token)):
            left, right = by_bytes.get(token[:cut]), by_bytes.get(token[cut:])
            if left is not None and right is not None:
                merges.append(Merge(left, right, i, ranks[pieces[i].score]))
    return tuple(merges)


def splits_at_spaces(tokens: Sequence[bytes | None]) -> bool:
    """Whether no token has a space after another character: a text may then be cut before each run of spaces."""
    return b" " in tokens and all(t is None or b" " not in t.lstrip(b" ") for t in tokens)


def _bytes(piece: Piece) -> bytes | None:
    if piece.kind is Kind.UNKNOWN:
        return UNKNOWN_TEXT.encode()
    if piece.kind is Kind.UNUSED or not piece.text:
        return None
    if piece.kind is Kind.NORMAL and " " in piece.text:
        raise Unsupported(f"a piece with a plain space: {piece.text[:40]!r}")
    return piece.text.replace(VISIBLE_SPACE, " ").encode()
