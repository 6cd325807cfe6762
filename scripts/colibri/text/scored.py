# SPDX-License-Identifier: Apache-2.0
"""SentencePiece vocabularies (tokenizer.model, tokenizer.bin of llama2.c, `llama` in GGUF) as a tokenizer.json.

One form for all: the host reads it with the tokenizers package, and the device's tables are made from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from colibri.text.rules import VISIBLE_SPACE, Unsupported


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


def tokenizer_json(
    pieces: Sequence[Piece], *, unigram: bool, prefix: bool, before: Sequence[int] = (), after: Sequence[int] = ()
) -> bytes:
    """A tokenizer.json with byte fallback where there are byte pieces, and no normalisation but that of spaces.

    prefix         a space is put before the text (`add_dummy_prefix`)
    before, after  ids around every text
    Raises Unsupported.
    """
    names, around = [piece.text for piece in pieces], [*before, *after]
    check_pieces(pieces, around)
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens(pieces),
        **_spaces(unigram=unigram, prefix=prefix, names=names),
        "post_processor": template(names, before, after) if around else None,
        "decoder": {"type": "Sequence", "decoders": _decoders(prefix=prefix)},
        "model": _unigram(pieces) if unigram else _bpe(pieces),
    }
    return json.dumps(document, ensure_ascii=False).encode()


def check_pieces(pieces: Sequence[Piece], around: Sequence[int]) -> None:
    """Raise Unsupported for a vocabulary that names cannot tell apart, or an id around the text that is not in it."""
    names = {piece.text for piece in pieces}
    if len(names) != len(pieces) or "" in names:
        raise Unsupported("a vocabulary with an empty piece, or one that is there twice")
    if any(not 0 <= i < len(pieces) for i in around):
        raise Unsupported("an id around the text that is not in the vocabulary")


def splits_at_spaces(tokens: Sequence[bytes | None]) -> bool:
    """Whether no token has a space after another character: a text may then be cut before each run of spaces."""
    return b" " in tokens and all(t is None or b" " not in t.lstrip(b" ") for t in tokens)


_ADDED = (Kind.UNKNOWN, Kind.CONTROL, Kind.USER_DEFINED)


def added_tokens(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """The pieces that are looked for in the text as it stands."""
    return [_added(i, p) for i, p in enumerate(pieces) if p.kind in _ADDED]


def _added(i: int, piece: Piece) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": i, "content": piece.text, **flags, "special": piece.kind is not Kind.USER_DEFINED}


def _spaces(*, unigram: bool, prefix: bool, names: Sequence[str]) -> dict[str, Any]:
    """Spaces become visible; a Unigram model whose pieces have one only at their start may take a text word by word."""
    parts: list[dict[str, Any]] = [{"type": "Prepend", "prepend": VISIBLE_SPACE}] if prefix else []
    parts.append({"type": "Replace", "pattern": {"String": " "}, "content": VISIBLE_SPACE})
    words = None
    if unigram and splits_at_spaces([name.replace(VISIBLE_SPACE, " ").encode() for name in names]):
        words = {"type": "Metaspace", "replacement": VISIBLE_SPACE, "prepend_scheme": "never", "split": True}
    return {"normalizer": {"type": "Sequence", "normalizers": parts}, "pre_tokenizer": words}


def _decoders(*, prefix: bool) -> list[dict[str, Any]]:
    spaces = {"type": "Replace", "pattern": {"String": VISIBLE_SPACE}, "content": " "}
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    return [spaces, {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]


def template(names: Sequence[str], before: Sequence[int], after: Sequence[int]) -> dict[str, Any]:
    """A post-processor that puts ids around every text."""

    def special(i: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": names[i], "type_id": 0}}

    text = {"Sequence": {"id": "A", "type_id": 0}}
    used = {names[i]: {"id": names[i], "ids": [i], "tokens": [names[i]]} for i in (*before, *after)}
    single = [*map(special, before), text, *map(special, after)]
    return {"type": "TemplateProcessing", "single": single, "pair": [*single, text], "special_tokens": used}


def _unknown(pieces: Sequence[Piece]) -> int | None:
    return next((i for i, p in enumerate(pieces) if p.kind is Kind.UNKNOWN), None)


def _unigram(pieces: Sequence[Piece]) -> dict[str, Any]:
    vocab = [[p.text, p.score] for p in pieces]
    fallback = any(p.kind is Kind.BYTE for p in pieces)
    return {"type": "Unigram", "unk_id": _unknown(pieces), "vocab": vocab, "byte_fallback": fallback}


def _bpe(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Every pair of pieces that make a piece is a merge; the higher its score, the earlier (Kudo and Richardson 2018)."""
    scores = {p.text: p.score for p in pieces if p.kind in (Kind.NORMAL, Kind.USER_DEFINED)}
    merges = [(text[:cut], text[cut:]) for text in scores for cut in range(1, len(text))]
    merges = [(left, right) for left, right in merges if left in scores and right in scores]
    merges.sort(key=lambda merge: -scores[merge[0] + merge[1]])
    unknown = _unknown(pieces)
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None if unknown is None else pieces[unknown].text,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": any(p.kind is Kind.BYTE for p in pieces),
        "ignore_merges": False,
        "vocab": {p.text: i for i, p in enumerate(pieces)},
        "merges": merges,
    }
