# SPDX-License-Identifier: Apache-2.0
"""A SentencePiece tokenizer.model as a tokenizer.json: the protocol buffer is read without its package."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from colibri.text.rules import Unsupported
from colibri.text.scored import Kind, Piece, tokenizer_json

# Field numbers of sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_PIECE_TEXT, _PIECE_SCORE, _PIECE_KIND = 1, 2, 3
_MODEL_TYPE, _UNIGRAM, _BPE = 3, 1, 2
_CHARS_MAP, _DUMMY_PREFIX, _REMOVE_SPACES, _ESCAPE_SPACES = 2, 3, 4, 5


def convert(raw: bytes, *, before: Sequence[int] = (), after: Sequence[int] = ()) -> bytes:
    """The tokenizer.json of a tokenizer.model; ids around the text are the checkpoint's, not the file's. Raises Unsupported."""
    pieces: list[Piece] = []
    model_type, normalizer = _UNIGRAM, dict[int, int | bytes]()
    for number, value in _fields(raw):
        if number == _PIECES:
            pieces.append(_piece(_bytes(value)))
        elif number == _TRAINER:
            model_type = _number(dict(_fields(_bytes(value))).get(_MODEL_TYPE, _UNIGRAM))
        elif number == _NORMALIZER:
            normalizer = dict(_fields(_bytes(value)))
    if model_type not in (_UNIGRAM, _BPE):
        raise Unsupported("a SentencePiece model of words or characters")
    if normalizer.get(_CHARS_MAP):
        raise Unsupported("a SentencePiece model that normalises characters (precompiled_charsmap)")
    if _number(normalizer.get(_REMOVE_SPACES, 1)) or not _number(normalizer.get(_ESCAPE_SPACES, 1)):
        raise Unsupported("a SentencePiece model that removes extra spaces, or does not escape them")
    prefix = bool(_number(normalizer.get(_DUMMY_PREFIX, 1)))
    return tokenizer_json(pieces, unigram=model_type == _UNIGRAM, prefix=prefix, before=before, after=after)


def _piece(raw: bytes) -> Piece:
    fields = dict(_fields(raw))
    try:
        text = _bytes(fields.get(_PIECE_TEXT, b"")).decode("utf-8")
        kind = Kind(_number(fields.get(_PIECE_KIND, 1)))
    except ValueError as error:
        raise Unsupported(f"a damaged piece: {error}") from None
    bits = _number(fields.get(_PIECE_SCORE, 0))
    if bits >= 2**32:
        raise Unsupported("a damaged piece: a score of more than 32 bits")
    (score,) = struct.unpack("<f", struct.pack("<I", bits))
    return Piece(text, score, kind)


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field: varints and fixed32 as integers, strings and messages as bytes."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(raw, at)
            yield number, value
            continue
        size, at = (
            (4, at) if wire == 5 else (8, at) if wire == 1 else _varint(raw, at) if wire == 2 else (len(raw), at + 1)
        )
        if size > len(raw) - at:
            raise Unsupported("a protocol buffer that is cut short or damaged")
        part, at = raw[at : at + size], at + size
        yield number, part if wire == 2 else int.from_bytes(part, "little")


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(raw):
            break
        value |= (raw[at] & 0x7F) << shift
        at += 1
        if not raw[at - 1] & 0x80:
            return value, at
    raise Unsupported("a protocol buffer that is cut short or damaged")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Unsupported("a protocol buffer with a number where bytes belong")
    return value


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise Unsupported("a protocol buffer with bytes where a number belongs")
    return value
