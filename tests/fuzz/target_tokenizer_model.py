# SPDX-License-Identifier: Apache-2.0
"""SentencePiece's tokenizer.model: a protocol buffer whose fields, wire types and lengths are spoilt."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

from colibri.text.device import for_device
from colibri.text.rules import Unsupported
from colibri.text.sentencepiece import convert

from .choices import FLOATS, NUMBERS, Choices, spoilt_bytes

Field = tuple[int, int, object]
"""Field number, wire type, and a number, bytes or the fields of a message."""


def piece(text: str, score: float, kind: int = 1) -> Field:
    return (1, 2, [(1, 2, text.encode()), (2, 5, struct.unpack("<I", struct.pack("<f", score))[0]), (3, 0, kind)])


def seed(model_type: int) -> list[Field]:
    pieces = [piece("<unk>", 0.0, 2), piece("<s>", 0.0, 3), piece("</s>", 0.0, 3), piece("<0x41>", 0.0, 6)]
    pieces += [piece(text, -1.0 - i) for i, text in enumerate(("\u2581", "a", "b", "ab", "\u2581a", "x"))]
    return [
        *pieces,
        (2, 2, [(3, 0, model_type), (4, 0, 10)]),
        (3, 2, [(1, 2, b"identity"), (3, 0, 1), (4, 0, 0), (5, 0, 1)]),
    ]


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def encoded(c: Choices, fields: list[Field]) -> bytes:
    out = b""
    for number, wire, value in fields:
        raw = encoded(c, value) if isinstance(value, list) else value
        out += varint((number << 3 | wire) & 2**64 - 1)
        if isinstance(raw, bytes):
            out += varint(len(raw)) + raw if wire == 2 else raw
        elif isinstance(raw, int):
            fixed = {5: 4, 1: 8}.get(wire)
            low = raw & 2**64 - 1
            out += varint(low) if fixed is None else low.to_bytes(8, "little")[:fixed]
    return out


def spoil(c: Choices, fields: list[Field]) -> list[Field]:
    fields = list(fields)
    if not fields:
        return fields
    at = c.below(len(fields))
    number, wire, value = fields[at]
    if isinstance(value, list) and c.below(4):
        fields[at] = (number, wire, spoil(c, value))
        return fields
    match c.below(6):
        case 0:
            del fields[at]
        case 1:
            fields.insert(at, fields[at])
        case 2:
            fields[at] = (c.below(9) if c.below(2) else c.number(), wire, value)
        case 3:
            fields[at] = (number, c.below(8), value)
        case 4:
            fields[at] = (number, wire, c.pick(NUMBERS) if c.below(2) else c.take(c.below(9)))
        case _:
            fields.append(piece(c.take(c.below(5)).decode("utf-8", "replace"), c.pick(FLOATS), c.below(8)))
    return fields


def one(c: Choices, folder: Path) -> None:
    fields = seed(1 + c.below(2))
    around = (c.below(12),) if c.below(2) else ()
    for _ in c.steps():
        fields = spoil(c, fields)
    raw = encoded(c, fields)
    if c.below(3) == 1:
        raw = spoilt_bytes(c, raw)
    with contextlib.suppress(Unsupported):
        for_device(convert(raw, before=around))
