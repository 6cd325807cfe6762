# SPDX-License-Identifier: Apache-2.0
"""What the device's rules cannot express is refused with the reason, never approximated."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from colibri.text import sentencepiece, tokenizer_json
from colibri.text.codepoints import CodePoints
from colibri.text.pattern import UnsupportedPattern, parse, partition
from colibri.text.rules import Unsupported
from colibri.text.tables import tables_of

from .samples import DEEPSEEK, LLAMA3, O200K

BASE: dict[str, Any] = {
    "normalizer": None,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
    "post_processor": None,
    "decoder": {"type": "ByteLevel"},
    "added_tokens": [],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
}


def changed(**parts: Any) -> bytes:
    return json.dumps({**BASE, **parts}).encode()


def bpe(**parts: Any) -> dict[str, Any]:
    return {**BASE["model"], **parts}


def added(**parts: Any) -> list[dict[str, Any]]:
    return [{"id": 3, "content": "<x>", "special": True, **parts}]


def isolated(pattern: str) -> bytes:
    return changed(pre_tokenizer={"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"})


def around(**parts: Any) -> bytes:
    return changed(post_processor={"type": "TemplateProcessing", "single": [], **parts})


def unigram(*vocab: Any, **parts: Any) -> bytes:
    return changed(
        pre_tokenizer=None, decoder={"type": "Fuse"}, model={"type": "Unigram", "vocab": list(vocab), **parts}
    )


def nested(n: int) -> bytes:
    """Sequences inside sequences; the JSON itself is read."""
    text = json.dumps(BASE)
    return text.replace(
        '"normalizer": null', '"normalizer": ' + '{"type":"Sequence","normalizers":[' * n + "]}" * n
    ).encode()


def test_the_base_is_read() -> None:
    assert len(tables_of(tokenizer_json.rules_of(changed()))) > 0


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"\xff", "no JSON"),
        (b"[" * 5000, "no JSON|no object"),
        (b"[]", "the file that is no object"),
        (b"{}", "model that is no object"),
        (changed(model={"type": "WordPiece", "vocab": {}}), "the model WordPiece"),
        (changed(model=bpe(vocab={})), "empty"),
        (changed(model=bpe(vocab={"a": 0, "b": 0})), "an id twice"),
        (changed(model=bpe(vocab={"a": -1})), "an id that is -1"),
        (changed(model=bpe(vocab={"a": 1 << 40})), "an id that is"),
        (changed(model=bpe(vocab={"a": True})), "an id that is True"),
        (changed(model=bpe(merges=["a c"])), "without 'c'"),
        (changed(model=bpe(unk_token="<unk>")), "without '<unk>'"),
        (changed(model=bpe(dropout=0.1)), "dropout"),
        (changed(model=bpe(continuing_subword_prefix="##")), "continuing_subword_prefix"),
        (changed(normalizer={"type": "NFKC"}), "the normalizer NFKC"),
        (changed(normalizer={"type": "Lowercase"}), "the normalizer Lowercase"),
        (changed(pre_tokenizer={"type": "BertPreTokenizer"}), "BertPreTokenizer"),
        (
            changed(pre_tokenizer={"type": "Split", "pattern": {"Regex": "a"}, "behavior": "MergedWithNext"}),
            "MergedWithNext",
        ),
        (
            changed(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a|b)+c"}, "behavior": "Isolated"}),
            "a repeated group|",
        ),
        (
            changed(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(ab)+"}, "behavior": "Isolated"}),
            "a repeated group",
        ),
        (
            changed(pre_tokenizer={"type": "Split", "pattern": {"Regex": r"\p{Han}"}, "behavior": "Isolated"}),
            "no general category",
        ),
        (changed(pre_tokenizer={"type": "Metaspace", "replacement": "_"}), "another character than U\\+2581"),
        (changed(decoder=None), "without a decoder"),
        (changed(decoder={"type": "WordPiece"}), "the decoder WordPiece"),
        (changed(post_processor={"type": "BertProcessing"}), "the post-processor BertProcessing"),
        (changed(added_tokens=added(single_word=True)), "single word"),
        (changed(added_tokens=added(content="")), "empty"),
        # found by fuzzing: values of another type, numbers and texts that Python has and the file format has not
        (b'{"model": ' + b"9" * 5000 + b"}", "no JSON"),
        (nested(2000), "deeper than any|no JSON"),
        (changed(model=bpe(merges=[True])), "a merge that is not"),
        (changed(model=bpe(merges=[["a"]])), "a merge that is not"),
        (changed(model=bpe(merges=["a b c"])), "a merge that is not"),
        (changed(model=bpe(merges=[["a", 1]])), "a piece that is no text"),
        (changed(model=bpe(vocab={"\ud800": 0})), "a token that is no text"),
        (changed(added_tokens=added(content="\udfff")), "an added token that is no text"),
        (changed(added_tokens=added(content=5)), "an added token that is no text"),
        (changed(model=bpe(unk_token=3)), "unk_token that is no text"),
        (unigram(["a"]), "not a text and a score"),
        (unigram("a"), "an entry of the vocabulary that is no list"),
        (unigram([1, 0.0]), "a token that is no text"),
        (unigram(["a", "b"]), "a score that is not"),
        (unigram(["a", float("nan")]), "a score that is not"),
        (unigram(["a", 10**400]), "a score that is not"),
        (unigram(["a", 0.0], unk_id=1), "an id that is 1, which no token has"),
        (unigram(["a", 100.0], ["b", -1.0]), "scores so far above zero"),
        (around(single=[True]), "single that is no object"),
        (around(single=[{"SpecialToken": 3}]), "SpecialToken that is no object"),
        (around(single=[{"SpecialToken": {"id": "a"}}], special_tokens=[]), "special_tokens that is no object"),
        (around(single=[{"SpecialToken": {"id": "a"}}], special_tokens={"a": {"ids": 5}}), "ids that is no list"),
        (around(single=[{"SpecialToken": {"id": "a"}}], special_tokens={"a": {"ids": [9]}}), "which no token has"),
        (isolated("a{x}"), "'x' where a number"),
        (isolated("a{\u0663}"), "where a number"),
        (isolated("a{255}"), "out of range"),
        (isolated("a{99999999999}"), "where a number"),
        (isolated("\\x{zz}"), "where a number"),
        (isolated("\\x{110000}"), "a character out of range"),
        (isolated("abcdefghi"), "more than 8 items"),
        (isolated("(ab|cd)" * 4 + "(ab|cd)" * 5), "more than 256 alternatives|more than 8 items"),
        (changed(model={"type": "Unigram", "vocab": [["a", 0.1]], "unk_id": 0}), "Unigram model over bytes|2\\*\\*-40"),
    ],
)
def test_a_tokenizer_json_that_cannot_be_expressed_is_refused(raw: bytes, says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        tables_of(tokenizer_json.rules_of(raw))


SCORE_OF_33_BITS = b"\x0a\x09\x0a\x01a\x10\x80\x80\x80\x80\x10"  # found by fuzzing


@pytest.mark.parametrize(
    "raw",
    [SCORE_OF_33_BITS, b"\x0a", b"\x0a\x05ab", b"\x0b\x00", b"\x80" * 12, b"\x0a\x02\x0a\x09", b"\x10\x05\x0a\x00"],
)
def test_a_damaged_tokenizer_model_is_refused(raw: bytes) -> None:
    with pytest.raises(Unsupported):
        sentencepiece.convert(raw)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_crash_the_readers(raw: bytes) -> None:
    for read in (sentencepiece.convert, tokenizer_json.rules_of):
        with contextlib.suppress(Unsupported):
            read(raw)


@pytest.mark.parametrize(
    "pattern",
    ["a(?!bc)", "a*?", "a+(bc|ad)", "[[:alpha:]]", "(?<=a)b", "a{2,1}", "(a", "a)", "a||b", "^a", r"\bz", "["],
)
def test_patterns_outside_the_form_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedPattern):
        parse(pattern)


def match(pattern: str, text: str) -> list[str]:
    """Pieces by a scalar reading of the parsed pattern: independent of the C matcher."""

    def sequence(items: tuple[Any, ...], at: int, ahead: Any, negative: bool) -> int | None:
        if not items:
            here = at < len(text) and ord(text[at]) in ahead if ahead is not None else None
            return at if here is None or here != negative else None
        item, n = items[0], 0
        most = len(text) if item.most == 255 else item.most
        while n < most and at + n < len(text) and ord(text[at + n]) in item.chars:
            n += 1
        for count in [n] if item.possessive and n >= item.least else range(n, item.least - 1, -1):
            end = sequence(items[1:], at + count, ahead, negative)
            if end is not None:
                return end
        return None

    out, at, begin = [], 0, 0
    while at < len(text):
        ends = (sequence(a.items, at, a.ahead, a.negative) for a in parse(pattern))
        end = next((e for e in ends if e is not None and e > at), None)
        if end is None:
            at += 1
            continue
        out += [text[begin:at]] * (begin < at) + [text[at:end]]
        at = begin = end
    return out + [text[begin:]] * (begin < len(text))


@pytest.mark.parametrize("pattern", [LLAMA3, O200K, *DEEPSEEK])
def test_a_parsed_pattern_matches_what_the_expression_matches(pattern: str) -> None:
    rng = random.Random(pattern)
    split = Split(Regex(pattern), "isolated")
    for _ in range(200):
        text = "".join(rng.choice("aZ \n\t'sSl1.é日ǅ̈/\r!²") for _ in range(rng.randint(1, 14)))
        assert match(pattern, text) == [piece for piece, _ in split.pre_tokenize_str(text)], repr(text)


@given(st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 8)), max_size=4), min_size=1, max_size=5))
def test_a_partition_tells_apart_what_any_set_tells_apart(rows: list[list[tuple[int, int]]]) -> None:
    sets = [CodePoints.of((first, first + n) for first, n in row) for row in rows]
    runs, members = partition(sets)
    for code in range(70):
        number = next(n for first, n in reversed(runs) if first <= code)
        for one, classes in zip(sets, members, strict=True):
            assert (code in one) == (number in classes)
