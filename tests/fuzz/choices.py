# SPDX-License-Identifier: Apache-2.0
"""A fuzzer's bytes as decisions: how a valid file is spoilt. What coverage finds worth keeping is then a way to spoil it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

NUMBERS = (
    *(0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 512, 513, 1023, 1024, 1025),
    *(4095, 4096, 65535, 65536, 65537, 2**24, 2**24 + 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**53),
    *(2**53 + 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 32, 2**64 - 1),
)
"""Where readers of numbers go wrong."""

FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 2.0**-40, 1e4, 2.0**40, 2.0**50, 3e38, -3e38, float("inf"), float("nan"))

TEXTS = ("", "\0", "a", "ab", " ", "\u2581", "\ud800", "\U0001f600", "../x", "a\nb", "\x1b[31m", "9" * 400, "x" * 5000)

JSON: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 3, -1, 7, 65536, 2**31, 2**53, 2**64, 10**400, 0.0, 0.5, -0.5, 1e-13, 1e300, 5e-324),
    *(*TEXTS, [], [0], [[]], [1, 1], [None], {}, {"a": 1}, {"": {}}, [1] * 300),
)
"""What stands where something else should."""


class Choices:
    """Decisions from bytes, in order; after the last byte every decision is the first of its possibilities."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, n: int) -> bytes:
        """Up to n raw bytes."""
        self._at, begin = min(self._at + n, len(self._data)), self._at
        return self._data[begin : self._at]

    def below(self, n: int) -> int:
        """From 0 to n - 1."""
        if n <= 1:
            return 0
        return int.from_bytes(self.take((n - 1).bit_length() + 7 >> 3), "little") % n

    def pick(self, among: Sequence[T]) -> T:
        return among[self.below(len(among))]

    def number(self) -> int:
        """One that hurts, or any of up to 64 bits."""
        return self.pick(NUMBERS) if self.below(3) else int.from_bytes(self.take(1 << self.below(4)), "little")

    def steps(self) -> range:
        """How often to spoil something: mostly once, for of two errors only one is seen."""
        return range(self.pick((0, 1, 1, 1, 2, 2, 3, 5)))


def spoilt_bytes(c: Choices, raw: bytes, span: int | None = None) -> bytes:
    """Bytes changed, cut, repeated or inserted within the first `span`."""
    raw, span = bytes(raw), min(len(raw), span or len(raw))
    at = c.below(span + 1)
    match c.below(6):
        case 0:
            return raw[:at] + c.take(1 + c.below(8)) + raw[at + 1 :]
        case 1:
            width = 1 << c.below(4)
            number = (c.number() & (1 << 8 * width) - 1).to_bytes(width, "little")
            return raw[:at] + number + raw[at + width :]
        case 2:
            return raw[:at]
        case 3:
            return raw[:at] + raw[at + 1 + c.below(64) :]
        case 4:
            n = 1 + c.below(64)
            return raw[: at + n] + raw[at:]
        case _:
            return raw[:at] + c.take(c.below(16)) + raw[at:]


def spoilt_json(c: Choices, document: Any, odd: Sequence[Any] = JSON) -> Any:
    """A copy with one value, anywhere in it, replaced, removed, repeated or moved."""
    document = copy.deepcopy(document)
    at, key = document, None
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return document
        key = c.pick(keys)
        if not isinstance(at[key], dict | list) or not at[key] or c.below(5) == 0:
            break
        at = at[key]
    match c.below(6):
        case 0:
            del at[key]
        case 1 if isinstance(at, list):
            at.insert(c.below(len(at) + 1), copy.deepcopy(at[key]))
        case 1:
            at[c.pick(keys) + "x" * c.below(2)] = copy.deepcopy(at[key])
        case 2:
            at[key] = copy.deepcopy(at[c.pick(keys)])
        case 3 if isinstance(at[key], int | float) and not isinstance(at[key], bool):
            at[key] = c.number() if c.below(2) or abs(at[key]) > 2**53 else at[key] + c.pick((1, -1, 0.5, -0.5, 2**31))
        case 3 if isinstance(at[key], str):
            at[key] = spoilt_bytes(c, at[key].encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
        case _:
            at[key] = copy.deepcopy(c.pick(odd))
    return document
