# SPDX-License-Identifier: Apache-2.0
"""Rules as the bytes that firmware/tokenizer reads: docs/FORMAT.md 6 has every one of them."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from colibri.text.codepoints import CodePoints
from colibri.text.normalisation import normalisation
from colibri.text.pattern import partition
from colibri.text.rules import Bpe, Merge, Rules, Split, Unigram, Unsupported

MAGIC, VERSION = 0x4B544243, 1  # "CBTK"
NONE = 0xFFFFFFFF
HEADER = struct.Struct("<35I4x")  # the tables begin at a multiple of 16
MAX_SPLITS = 4
_FLAGS = ("by_bytes", "unigram", "fuse_unknown", "whole_words", "strip_one", "byte_fallback", "wide", "spaces")
_PREFIXES = ("none", "always", "unless_space", "first_unless_space")
_PREFIX_SHIFT, _STRIP_FIRST, _BYTE_TOKENS, _NFC = 8, 1 << 10, 1 << 11, 1 << 12


def tables_of(rules: Rules) -> bytes:
    """The tables, a multiple of 16 bytes. Raises Unsupported."""
    model = rules.model
    merges = model.merges if isinstance(model, Bpe) else ()
    wide = max(len(rules.tokens), *(m.rank for m in merges), 0) >= 0xFFFF
    ids = _Ids(wide)
    text = b"".join(t or b"" for t in rules.tokens)
    sections = [
        _u32(_ends(rules.tokens)),
        text,
        ids.pack(_sorted(rules)),
        _merges(merges, ids),
        _scores(model),
        b"" if rules.byte_ids is None else ids.pack(rules.byte_ids),
        _specials(rules),
        _u32((*rules.before, *rules.after)),
        _bits(rules.hidden, len(rules.tokens)),
        *_splits(rules.splits),
        *_normalisation(rules.nfc),
    ]
    offsets, body = [], b""
    for section in sections:
        offsets.append(HEADER.size + len(body))
        body += section + bytes(-len(section) % 16)
    header = [
        *(MAGIC, VERSION, HEADER.size + len(body), _flags(rules, wide), len(rules.tokens)),
        *(NONE if rules.unknown is None else rules.unknown, len(rules.specials), len(rules.before), len(rules.after)),
        *(len(merges), len(_sorted(rules)), len(rules.splits), max((len(t or b"") for t in rules.tokens), default=0)),
        *_unknown_score(model),
    ]
    classes, normalisation = sections[9], sections[11:]
    sizes = [len(part) // size for part, size in zip(normalisation, (16, 12, 4, 4), strict=True)]
    counted = [word for pair in zip(sizes, offsets[11:], strict=True) for word in pair]
    return HEADER.pack(*header, (len(classes) - 128) // 4, *offsets[:11], *counted) + body


class _Ids:
    """Ids of two bytes, or of four where two do not hold them; all ones: none."""

    def __init__(self, wide: bool) -> None:
        self._code = "I" if wide else "H"
        self._none = NONE if wide else 0xFFFF

    def pack(self, ids: Iterable[int | None]) -> bytes:
        values = [self._none if i is None else i for i in ids]
        return struct.pack(f"<{len(values)}{self._code}", *values)


def _flags(rules: Rules, wide: bool) -> int:
    said = {
        "by_bytes": rules.by_bytes,
        "unigram": isinstance(rules.model, Unigram),
        "fuse_unknown": rules.fuse_unknown,
        "whole_words": isinstance(rules.model, Bpe) and rules.model.whole_words,
        "strip_one": rules.strip == "one",
        "byte_fallback": rules.byte_fallback,
        "wide": wide,
        "spaces": rules.spaces,
    }
    flags = sum(said[name] << bit for bit, name in enumerate(_FLAGS)) | _PREFIXES.index(rules.prefix) << _PREFIX_SHIFT
    return flags | _STRIP_FIRST * (rules.strip == "first_token") | _BYTE_TOKENS * rules.byte_tokens | _NFC * rules.nfc


def _ends(tokens: Sequence[bytes | None]) -> list[int]:
    ends, at = [0], 0
    for token in tokens:
        at += len(token or b"")
        ends.append(at)
    return ends


def _sorted(rules: Rules) -> list[int]:
    """Ids of the tokens that the model can find, by their bytes."""
    found = [i for i, token in enumerate(rules.tokens) if token and i not in rules.added]
    by_bytes = sorted(found, key=lambda i: rules.tokens[i] or b"")
    for one, other in pairwise(by_bytes):
        if rules.tokens[one] == rules.tokens[other]:
            raise Unsupported(f"two tokens of the same bytes, {one} and {other}")
    return by_bytes


def _merges(merges: Sequence[Merge], ids: _Ids) -> bytes:
    rows = sorted((m.left, m.right, m.merged, m.rank) for m in merges)
    return ids.pack(value for row in rows for value in row)


def _scores(model: Bpe | Unigram) -> bytes:
    if isinstance(model, Bpe):
        return b""
    packed = struct.pack(f"<{len(model.scores)}f", *model.scores)
    if struct.unpack(f"<{len(model.scores)}f", packed) != model.scores:
        raise Unsupported("a score that is no float32")
    return packed


def _unknown_score(model: Bpe | Unigram) -> tuple[int, int]:
    """Ten below the lowest score, as tokenizers has it, in units of 2**-40: low and high word."""
    if isinstance(model, Bpe):
        return 0, 0
    if max(map(abs, model.scores)) > abs(min(model.scores) - 10.0):
        raise Unsupported("scores so far above zero that sums of them may not be exact")
    fixed = round((min(model.scores) - 10.0) * 2**40) & (2**64 - 1)
    return fixed & NONE, fixed >> 32


def _specials(rules: Rules) -> bytes:
    """A bit for each first byte, then (id, flags), longer texts first."""
    first = {special.text[0] for special in rules.specials}
    rows: list[int] = []
    for s in sorted(rules.specials, key=lambda s: (-len(s.text), s.id)):
        rows += [s.id, s.normalized | s.left << 1 | s.right << 2]
    return _bits(first, 256) + _u32(rows)


def _splits(splits: Sequence[Split]) -> tuple[bytes, bytes]:
    """Classes of code points (128 bytes for ASCII, then a word for each run), and the programs."""
    if len(splits) > MAX_SPLITS:
        raise Unsupported(f"{len(splits)} splits after one another")
    sets: list[CodePoints] = []
    for split in splits:
        for alternative in split.pattern:
            sets += [item.chars for item in alternative.items]
            sets.append(alternative.ahead or CodePoints(()))
    runs, members = partition(sets)
    if max(number for _, number in runs) >= 64:
        raise Unsupported("more than 64 classes of characters")
    starts = [first for first, _ in runs]
    ascii_classes = bytes(runs[bisect_right(starts, c) - 1][1] for c in range(128))
    words: list[int] = []
    masks = iter(members)
    for split in splits:
        program: list[int] = []
        for a in split.pattern:
            items = [(*_mask(next(masks)), i.least | i.most << 8 | i.possessive << 16) for i in a.items]
            ahead = 0 if a.ahead is None else 2 if a.negative else 1
            program += [len(items) | ahead << 8, *_mask(next(masks)), *(word for item in items for word in item)]
        words += [len(split.pattern) | split.removed << 31, len(program), *program]
    return ascii_classes + _u32(first << 8 | number for first, number in runs), _u32(words)


def _normalisation(wanted: bool) -> tuple[bytes, bytes, bytes, bytes]:
    """Decompositions, compositions, combining classes, and what may join the character before it."""
    if not wanted:
        return b"", b"", b"", b""
    forms = normalisation()
    pairs = sorted((first, second, code) for code, (first, second) in forms.pairs.items())
    apart = sorted({**forms.decompositions, **forms.pairs}.items())
    rows = [word for code, parts in apart for word in (code, *parts, *[0] * (3 - len(parts)))]
    seconds = {second for _, second, _ in pairs} | {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}
    # a character that decomposes into marks joins what is before it too
    seconds |= {code for code, parts in apart if parts[0] in seconds or parts[0] in forms.classes}
    marks = [code << 8 | number for code, number in sorted(forms.classes.items())]
    return _u32(rows), _u32(word for pair in pairs for word in pair), _u32(marks), _u32(sorted(seconds))


def _mask(numbers: Sequence[int]) -> tuple[int, int]:
    mask = sum(1 << number for number in numbers)
    return mask & NONE, mask >> 32


def _bits(members: Iterable[int], n: int) -> bytes:
    out = bytearray((n + 7) // 8)
    for i in members:
        out[i // 8] |= 1 << i % 8
    return bytes(out)


def _u32(values: Iterable[int]) -> bytes:
    listed = list(values)
    return struct.pack(f"<{len(listed)}I", *listed)
