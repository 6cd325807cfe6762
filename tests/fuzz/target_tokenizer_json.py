# SPDX-License-Identifier: Apache-2.0
"""tokenizer.json files: read for the device (tables, or the reason why not) and for the host."""

from __future__ import annotations

import contextlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from colibri.errors import ColibriError
from colibri.text.bytelevel import GPT2_PATTERN
from colibri.text.device import for_device
from colibri.text.scored import Kind, Piece, tokenizer_json
from colibri.tokenizer import Tokenizer
from text.samples import DEEPSEEK, LLAMA3, O200K

from .choices import JSON, TEXTS, Choices, spoilt_bytes, spoilt_json

_PATTERNS = (GPT2_PATTERN, LLAMA3, O200K, *DEEPSEEK, r"\p{L}+|\s+(?!\S)", "a{2,3}+b*|[^x-z]", r"\x{41}|(?:ab|c)?d")
_SYNTAX = [*"a])|*+?{}-.,[", r"\p{L}", r"\s", r"\P{N}", r"\d", r"\x{", r"\u", r"[^\r\n", "(?:", "(?i:", "(?!", "(?="]
_SYNTAX += ["{1,3}", "9999999999", "x{255}", "[:alpha:]", "\u2581", "\U0010ffff", " "]
_BPE = {
    "type": "BPE",
    "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "<unk>": 4},
    "merges": [["a", "b"]],
    "unk_token": "<unk>",
}
_UNIGRAM = {"type": "Unigram", "vocab": [["<unk>", 0.0], ["\u2581a", -1.5], ["a", -2.0], ["<0x41>", -3.0]], "unk_id": 0}
_PARTS: tuple[Any, ...] = (
    {"type": "NFC"},
    {"type": "Prepend", "prepend": "\u2581"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True},
    {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True},
    {"type": "Digits", "individual_digits": True},
    *({"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in _PATTERNS),
    {"type": "Split", "pattern": {"Regex": " +"}, "behavior": "Removed"},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A"}}]},
)
_ODD = (*JSON, *_PARTS, _BPE, _UNIGRAM, *_PATTERNS, "Isolated", "Removed", "always", "never", ["a", "b"], "a b")


def _base(**parts: Any) -> dict[str, Any]:
    added = [{"id": 5, "content": "<x>", "special": True, "normalized": False, "lstrip": True, "rstrip": False}]
    return {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": None, "post_processor": None,
            "decoder": {"type": "ByteLevel"}, "model": _BPE, **parts}  # fmt: skip


@cache
def seeds() -> list[Any]:
    pieces = [Piece("<unk>", 0.0, Kind.UNKNOWN), Piece("<s>", 0.0, Kind.CONTROL), Piece("<0x41>", 0.0, Kind.BYTE)]
    pieces += [Piece(text, -float(i)) for i, text in enumerate(("\u2581", "a", "b", "ab", "\u2581a"))]
    scored = [json.loads(tokenizer_json(pieces, unigram=u, prefix=True, before=(1,))) for u in (False, True)]
    byte_level = _base(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False}, post_processor=_PARTS[-1])
    splits = [
        {"type": "Sequence", "pretokenizers": [split, {"type": "ByteLevel", "use_regex": False}]}
        for split in _PARTS[6:9]
    ]
    nfc = _base(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]}, pre_tokenizer=splits[1])
    return [byte_level, *scored, _base(model=_UNIGRAM), nfc, *(_base(pre_tokenizer=split) for split in splits)]


def pattern(c: Choices) -> dict[str, Any]:
    """A regular expression made of pieces of published ones."""
    text = "".join(c.pick(_SYNTAX) for _ in range(1 + c.below(24)))
    if c.below(2):
        text = spoilt_bytes(c, c.pick(_PATTERNS).encode()).decode("utf-8", "replace")
    split = {"type": "Split", "pattern": {"Regex": text}, "behavior": c.pick(("Isolated", "Removed")), "invert": False}
    return _base(
        pre_tokenizer={"type": "Sequence", "pretokenizers": [split, {"type": "ByteLevel", "use_regex": False}]}
    )


def one(c: Choices, folder: Path) -> None:
    document = c.pick(seeds())
    if c.below(3) == 1:
        document = pattern(c)
    for _ in c.steps():
        document = spoilt_json(c, document, _ODD)
    raw = json.dumps(document, ensure_ascii=c.below(4) != 1).encode("utf-8", "surrogatepass")
    if c.below(8) == 1:
        raw = spoilt_bytes(c, raw)
    for_device(raw)
    with contextlib.suppress(ColibriError):
        host = Tokenizer(raw, "tokenizer.json")
        ids = host.encode(c.pick(("", "a b", "ab<x>", *TEXTS[-3:-2])))
        "".join(host.stream(ids))
