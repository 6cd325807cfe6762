# SPDX-License-Identifier: Apache-2.0
"""A tokenizer.json as the keys of a GGUF file (tokenizer.ggml.*): byte-level merges as `gpt2`, SentencePiece's as `llama`.

The keys are read back by the importer: they count only where that gives the same rules from text to ids.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from colibri.export.gguf.writer import Value
from colibri.text.merged import tokenizer_json as merged_json
from colibri.text.pretokenizers import PRETOKENIZERS
from colibri.text.rules import Rules, Unsupported
from colibri.text.scored import Kind, Piece
from colibri.text.scored import tokenizer_json as scored_json
from colibri.text.tokenizer_json import rules_of

_PREFIX = "tokenizer.ggml."
NO_VOCABULARY: dict[str, Value] = {f"{_PREFIX}model": "none"}
"""What a file of a model that takes and gives ids must have for llama.cpp's reader."""


def special_ids(bos_id: int | None, eos_ids: tuple[int, ...]) -> dict[str, Value]:
    """Return the keys of the ids that begin and end a text; of several that end it, the first two."""
    found: dict[str, Value] = {} if bos_id is None else {f"{_PREFIX}bos_token_id": bos_id}
    return found | {f"{_PREFIX}{name}_token_id": i for name, i in zip(("eos", "eot"), eos_ids, strict=False)}


def vocabulary(raw: bytes, vocab_size: int) -> dict[str, Value]:
    """Return the keys; raises Unsupported with the reason where a GGUF file cannot say this tokenizer."""
    rules = rules_of(raw)
    model = json.loads(raw)["model"]
    if model.get("type") != "BPE":
        raise Unsupported("a model that is not byte-pair encoding")
    pieces = _pieces(json.loads(raw), vocab_size)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    keys = _byte_level(rules, pieces, merges) if rules.by_bytes else _scored(rules, pieces, merges)
    return {
        f"{_PREFIX}{key}": value
        for key, value in {
            **keys,
            "tokens": [p.text for p in pieces],
            "token_type": [int(p.kind) for p in pieces],
            "add_bos_token": bool(rules.before),
            "add_eos_token": bool(rules.after),
        }.items()
    }


def _pieces(document: dict[str, Any], vocab_size: int) -> list[Piece]:
    texts = {i: text for text, i in document["model"]["vocab"].items()}
    kinds = {i: Kind.BYTE for i, t in texts.items() if len(t) == 6 and t.startswith("<0x") and t.endswith(">")}
    unknown = document["model"].get("unk_token")
    for added in document.get("added_tokens") or []:
        texts[added["id"]] = added["content"]
        kinds[added["id"]] = Kind.CONTROL if added["special"] else Kind.USER_DEFINED
        if added["content"] == unknown:
            kinds[added["id"]] = Kind.UNKNOWN
    if not texts or max(texts) >= vocab_size:
        raise Unsupported("more tokens than the embedding has rows")
    # Rows without a token get a name, as llama.cpp's converter gives them one.
    kinds |= dict.fromkeys(set(range(vocab_size)) - texts.keys(), Kind.UNUSED)
    return [Piece(texts.get(i, f"[PAD{i}]"), 0.0, kinds.get(i, Kind.NORMAL)) for i in range(vocab_size)]


def _is_same(again: Rules, rules: Rules) -> bool:
    """Whether two tokenizers are one, but for names of ids that no text gives."""
    wanted, n = rules, len(rules.tokens)
    if rules.by_bytes and {bytes([b]) for b in range(256)} <= set(rules.tokens):
        wanted = replace(rules, unknown=None, fuse_unknown=False)  # nothing is unknown where every byte is a token
    return replace(again, tokens=again.tokens[:n]) == wanted


def _byte_level(rules: Rules, pieces: list[Piece], merges: list[str]) -> dict[str, Value]:
    for name, pretokenizer in PRETOKENIZERS.items():
        again = merged_json(pieces, merges, pretokenizer, before=rules.before, after=rules.after)
        if _is_same(rules_of(again), rules):
            return {"model": "gpt2", "pre": name, "merges": list(merges)}
    raise Unsupported("a pre-tokenizer, or another rule, for which GGUF has no name here")


def _scored(rules: Rules, pieces: list[Piece], merges: list[str]) -> dict[str, Value]:
    """Scores that sort the merges as they are: minus the place of the first merge to each piece."""
    first: dict[str, int] = {}
    for rank, merge in enumerate(merges):
        first.setdefault(merge.replace(" ", "", 1), rank)
    scored = [Piece(p.text, -float(first.get(p.text, len(merges))), p.kind) for p in pieces]
    prefix = rules.prefix == "always"
    again = scored_json(scored, unigram=False, prefix=prefix, before=rules.before, after=rules.after)
    if not _is_same(rules_of(again), rules):
        raise Unsupported("merges or spaces that SentencePiece's scores cannot say")
    return {"model": "llama", "scores": [p.score for p in scored], "add_space_prefix": prefix}
