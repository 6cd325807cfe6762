# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of llama2.c in three versions, and the tokenizer beside them."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

from colibri.importers import load
from colibri.text.device import for_device
from importers.llama2c_files import VOCAB, file_of, tokenizer_entries, weights

from .choices import FLOATS, Choices, spoilt_bytes

_FORMS = [(version, tied) for version in (0, 1, 2) for tied in (True, False)]
_SEVEN = 7
_ENTRIES = 6  # of a small vocabulary's entries that are spoilt one by one


@cache
def seed(i: int) -> bytes:
    version, tied = _FORMS[i]
    return file_of(version, tied=tied, w=weights())


def spoil_numbers(c: Choices, raw: bytes, version: int) -> bytes:
    """One of the header's numbers."""
    at = 4 * c.below(_SEVEN) + (8 if version else 0)
    if version and c.below(4) == 0:
        at = c.pick((0, 4, 36, 37))
    (old,) = struct.unpack_from("<i", raw.ljust(at + 4, b"\0"), at)
    number = (old + c.pick((1, -1, 2)) if c.below(2) else c.number()) & 2**32 - 1
    return raw[:at] + struct.pack("<I", number) + raw[at + 4 :]


def tokenizer(c: Choices) -> bytes:
    entries = tokenizer_entries()
    for _ in range(c.below(4)):
        at = c.below(len(entries))
        score, n, text = entries[at]
        match c.below(4):
            case 0:
                entries[at] = (c.pick(FLOATS), n, text)
            case 1:
                entries[at] = (score, (c.number() & 2**32 - 1) - 2**31, text)
            case 2:
                text = c.take(c.below(9))
                entries[at] = (score, len(text), text)
            case _:
                entries[at] = c.pick(entries)
    raw = struct.pack("<i", 6) + b"".join(struct.pack("<fi", score, n) + text for score, n, text in entries)
    return spoilt_bytes(c, raw) if c.below(4) == 1 else raw


def one(c: Choices, folder: Path) -> None:
    form = c.below(len(_FORMS))
    raw = seed(form)
    for _ in c.steps():
        raw = spoil_numbers(c, raw, _FORMS[form][0]) if c.below(3) else spoilt_bytes(c, raw, 4096)
    (folder / "model.bin").write_bytes(raw)
    if c.below(2):
        (folder / f"tok{VOCAB}.bin").write_bytes(tokenizer(c))
    model = load(folder / "model.bin")
    for tensor in model:
        assert tensor.read().shape == tensor.shape
    if model.tokenizer_json is not None:
        for_device(model.tokenizer_json)
