# SPDX-License-Identifier: Apache-2.0
r"""The regular expressions of pre-tokenizers, as ordered alternatives of repeated character sets.

What published tokenizers use has this form: ``[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|...``. Groups are multiplied out
where that cannot change the match, everything else is refused; so a matcher needs no stack and its time is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from colibri.text.codepoints import END, CodePoints, category, spaces

MANY = 255
"""As `Item.most`: any number."""

MAX_ITEMS = 8
"""Of an alternative: the matcher on the device has memory for so many."""

MAX_ALTERNATIVES = 256

_CLASSES: dict[str, Callable[[], CodePoints]] = {"s": spaces, "d": partial(category, "Nd")}
_ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "f": "\f", "v": "\v"}
# Other characters that an insensitive match of Oniguruma takes for a letter.
_FOLDED = {"s": "\u017f", "k": "\u212a"}


class UnsupportedPattern(ValueError):
    """A regular expression outside this form; says where and why."""


@dataclass(frozen=True)
class Item:
    """A set of characters, `least` to `most` times, as many as possible; possessive: gives none back."""

    chars: CodePoints
    least: int = 1
    most: int = 1
    possessive: bool = False


@dataclass(frozen=True)
class Alternative:
    """Items in sequence. ahead: what must follow (negative: must not; the end of the text does not match it)."""

    items: tuple[Item, ...]
    ahead: CodePoints | None = None
    negative: bool = False


def parse(pattern: str) -> tuple[Alternative, ...]:
    """The alternatives of a regular expression, in order. Raises UnsupportedPattern."""
    parser = _Parser(pattern)
    found = parser.alternatives(insensitive=False)
    if parser.at < len(pattern):
        raise parser.error("an unmatched )")
    if any(not a.items for a in found):
        raise parser.error("an alternative that matches nothing")
    if any(len(a.items) > MAX_ITEMS for a in found):
        raise parser.error(f"an alternative of more than {MAX_ITEMS} items")
    return tuple(found)


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def error(self, what: str) -> UnsupportedPattern:
        return UnsupportedPattern(f"{what}, at character {self.at} of the pattern")

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def take(self, text: str) -> bool:
        found = self.peek(text)
        self.at += len(text) * found
        return found

    def next(self) -> str:
        if self.at >= len(self.pattern):
            raise self.error("the end where more should follow")
        self.at += 1
        return self.pattern[self.at - 1]

    def alternatives(self, *, insensitive: bool) -> list[Alternative]:
        found = self.sequence(insensitive)
        while self.take("|"):
            found += self.sequence(insensitive)
        return found

    def sequence(self, insensitive: bool) -> list[Alternative]:
        found = [Alternative(())]
        while self.at < len(self.pattern) and not self.peek("|") and not self.peek(")"):
            if any(a.ahead is not None for a in found):
                raise self.error("a look-ahead that is not at the end")
            if self.peek("(?!") or self.peek("(?="):
                negative = self.peek("(?!")
                self.at += 3
                ahead = self.chars(insensitive)
                if not self.take(")"):
                    raise self.error("a look-ahead at more than one character")
                found = [replace(a, ahead=ahead, negative=negative) for a in found]
            elif self.take("("):
                found = self.joined(found, self.group(insensitive))
            else:
                item = self.quantified(self.chars(insensitive))
                found = [replace(a, items=(*a.items, item)) for a in found]
        return found

    def group(self, insensitive: bool) -> list[Alternative]:
        if self.take("?i:"):
            insensitive = True
        elif self.peek("?") and not self.take("?:"):
            raise self.error("a group of another kind than (?: and (?i:")
        inner = self.alternatives(insensitive=insensitive)
        if not self.take(")"):
            raise self.error("a group without its )")
        single = [a.items[0] for a in inner if len(a.items) == 1 and a.items[0].least == a.items[0].most == 1]
        if len(single) == len(inner) and all(a.ahead is None for a in inner):
            union = CodePoints(())
            for item in single:
                union |= item.chars
            return [Alternative((self.quantified(union),))]
        quantifier = self.quantified(CodePoints(()))
        if (quantifier.least, quantifier.most) not in ((1, 1), (0, 1)):
            raise self.error("a repeated group")
        return inner if quantifier.least else [*inner, Alternative(())]

    def joined(self, before: list[Alternative], group: list[Alternative]) -> list[Alternative]:
        """The product; where the group has alternatives, what comes before must not be able to give them a character."""
        if len(group) > 1:
            first = CodePoints(())
            for a in group:
                first |= a.items[0].chars if a.items else CodePoints(())
            for a in before:
                if any((i.least, i.most) != (1, 1) and not i.possessive and i.chars & first for i in a.items[-1:]):
                    raise self.error("a group whose start may belong to what is before it")
        if len(before) * len(group) > MAX_ALTERNATIVES:
            raise self.error(f"more than {MAX_ALTERNATIVES} alternatives")
        return [Alternative((*a.items, *b.items), b.ahead, b.negative) for a in before for b in group]

    def chars(self, insensitive: bool) -> CodePoints:
        c = self.next()
        if c == "[":
            return self.bracket(insensitive)
        if c == ".":
            return ~CodePoints.chars("\n")
        if c == "\\":
            return self.escaped(insensitive)
        if c in "*+?{}^$()":
            raise self.error(f"'{c}' in this place")
        return _literal(c, insensitive)

    def escaped(self, insensitive: bool) -> CodePoints:
        c = self.next()
        if c in "pP":
            return self.property() if c == "p" else ~self.property()
        if c.lower() in _CLASSES:
            found = _CLASSES[c.lower()]()
            return found if c.islower() else ~found
        if c == "x" and self.take("{"):
            return CodePoints.chars(chr(self.number(self.until("}"), 16, END - 1)))
        if c.isalnum() and c not in _ESCAPES:
            raise self.error(f"\\{c}")
        return _literal(_ESCAPES.get(c, c), insensitive)

    def until(self, end: str) -> str:
        stop = self.pattern.find(end, self.at)
        if stop < 0:
            raise self.error(f"no {end}")
        text, self.at = self.pattern[self.at : stop], stop + 1
        return text

    def number(self, digits: str, base: int, most: int) -> int:
        """A number of at most `most`."""
        if not digits or len(digits) > 8 or set(digits) - set("0123456789abcdefABCDEF"[: 10 if base == 10 else None]):
            raise self.error(f"{digits[:20]!r} where a number should be")
        if int(digits, base) > most:
            raise self.error("a quantifier out of range" if base == 10 else "a character out of range")
        return int(digits, base)

    def property(self) -> CodePoints:
        if not self.take("{"):
            raise self.error("\\p without {")
        name = self.until("}")
        negated = name.startswith("^")
        try:
            found = category(name.lstrip("^"))
        except KeyError:
            raise self.error(f"\\p{{{name}}}, which is no general category") from None
        return ~found if negated else found

    def bracket(self, insensitive: bool) -> CodePoints:
        negated = self.take("^")
        found = CodePoints(())
        while not self.take("]"):
            if self.peek("[:") or self.peek("&&"):
                raise self.error("a class inside a class")
            c = self.chars_in_bracket(insensitive)
            if self.peek("-") and not self.peek("-]") and len(c.ranges) == 1:
                self.at += 1
                last = self.chars_in_bracket(insensitive)
                c = CodePoints.of([(c.ranges[0][0], last.ranges[-1][1])])
            found |= c
        return ~found if negated else found

    def chars_in_bracket(self, insensitive: bool) -> CodePoints:
        c = self.next()
        return self.escaped(insensitive) if c == "\\" else _literal(c, insensitive)

    def quantified(self, chars: CodePoints) -> Item:
        least, most = 1, 1
        if self.take("?"):
            least = 0
        elif self.take("*"):
            least, most = 0, MANY
        elif self.take("+"):
            most = MANY
        elif self.take("{"):
            low, comma, high = self.until("}").partition(",")
            least = self.number(low or "0", 10, MANY - 1)
            most = least if not comma else self.number(high, 10, MANY - 1) if high else MANY
        else:
            return Item(chars)
        if self.peek("?"):
            raise self.error("a lazy quantifier")
        if least > most:
            raise self.error("a quantifier out of range")
        return Item(chars, least, most, possessive=self.take("+"))


def _literal(c: str, insensitive: bool) -> CodePoints:
    if not insensitive:
        return CodePoints.chars(c)
    return CodePoints.chars(c.lower() + c.upper() + _FOLDED.get(c.lower(), ""))


def partition(sets: list[CodePoints]) -> tuple[list[tuple[int, int]], list[list[int]]]:
    """Split all code points into classes whose members no set tells apart.

    Returns (first code point, class) of each run, rising, and for each set its classes.
    """
    different = {one: i for i, one in enumerate(dict.fromkeys(sets))}
    flips = {0: 0}  # at each edge the sets that begin or end there, a bit each
    for one, i in different.items():
        for edge in (edge for pair in one.ranges for edge in pair):
            flips[edge] = flips.get(edge, 0) ^ 1 << i
    flips.pop(END, None)
    classes: dict[int, int] = {}
    runs: list[tuple[int, int]] = []
    inside = 0
    for edge in sorted(flips):
        inside ^= flips[edge]
        number = classes.setdefault(inside, len(classes))
        if not runs or runs[-1][1] != number:
            runs.append((edge, number))
    members = {one: [number for key, number in classes.items() if key >> i & 1] for one, i in different.items()}
    return runs, [members[one] for one in sets]
