# SPDX-License-Identifier: Apache-2.0
"""Sets of code points, and the general categories as the tokenizers package knows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

END = 0x110000
# What \s means to Oniguruma.
_SPACES: tuple[tuple[int, int], ...] = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
)
_SPACES += ((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))


@dataclass(frozen=True)
class CodePoints:
    """A set of code points as rising, disjoint ranges [first, end)."""

    ranges: tuple[tuple[int, int], ...]

    @staticmethod
    def of(ranges: Iterable[tuple[int, int]]) -> CodePoints:
        """The union of ranges [first, end), in any order."""
        merged: list[tuple[int, int]] = []
        for first, end in sorted(ranges):
            if merged and first <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            elif first < end:
                merged.append((first, end))
        return CodePoints(tuple(merged))

    @staticmethod
    def chars(text: str) -> CodePoints:
        """The characters of a string."""
        return CodePoints.of((ord(c), ord(c) + 1) for c in text)

    def __or__(self, other: CodePoints) -> CodePoints:
        return CodePoints.of((*self.ranges, *other.ranges))

    def __invert__(self) -> CodePoints:
        edges = [0, *(edge for one in self.ranges for edge in one), END]
        return CodePoints.of(zip(edges[::2], edges[1::2], strict=True))

    def __and__(self, other: CodePoints) -> CodePoints:
        return ~(~self | ~other)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __contains__(self, code: int) -> bool:
        return any(first <= code < end for first, end in self.ranges)


@cache
def category(name: str) -> CodePoints:
    r"""The set of ``\p{NAME}``: a general category, or the first letter of several. Raises KeyError."""
    found = [ranges for key, ranges in _categories().items() if key == name or (len(name) == 1 and key[0] == name)]
    if not found:
        raise KeyError(name)
    return CodePoints.of(one for ranges in found for one in ranges)


def spaces() -> CodePoints:
    r"""The set of ``\s``."""
    return CodePoints.of((first, last + 1) for first, last in _SPACES)


@cache
def _categories() -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for line in (Path(__file__).parent / "categories.txt").read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            first, last, name = line.split()
            found.setdefault(name, []).append((int(first, 16), int(last, 16) + 1))
    return found
