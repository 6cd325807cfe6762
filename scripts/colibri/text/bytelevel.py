# SPDX-License-Identifier: Apache-2.0
"""The byte-level alphabet of GPT-2: a visible character for each byte."""

from __future__ import annotations

from functools import cache

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@cache
def byte_of_char() -> dict[str, int]:
    """Visible characters stand for themselves; the other bytes, in order, are U+0100 and after."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in visible]
    return {chr(b): b for b in visible} | {chr(0x100 + i): b for i, b in enumerate(hidden)}


def to_bytes(token: str) -> bytes | None:
    """The bytes of a token in this alphabet; None where a character is not of it."""
    table = byte_of_char()
    try:
        return bytes(table[c] for c in token)
    except KeyError:
        return None
