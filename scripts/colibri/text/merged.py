# SPDX-License-Identifier: Apache-2.0
"""Byte-level vocabularies with their merges (`gpt2` in GGUF) as a tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Sequence

from colibri.text.pretokenizers import Pretokenizer
from colibri.text.rules import Unsupported
from colibri.text.scored import Piece, added_tokens, check_pieces, template


def tokenizer_json(
    pieces: Sequence[Piece],
    merges: Sequence[str],
    pretokenizer: Pretokenizer,
    *,
    before: Sequence[int] = (),
    after: Sequence[int] = (),
) -> bytes:
    """A tokenizer.json.

    pieces         each in the characters that stand for bytes; control and user-defined ones as they are
    merges         two pieces with a space between, the first merge first
    before, after  ids around every text
    Raises Unsupported.
    """
    check_pieces(pieces, [*before, *after])
    pairs = [merge.split(" ") for merge in merges]
    if any(len(pair) != 2 for pair in pairs):
        raise Unsupported("a merge that is not of two pieces")
    names = [piece.text for piece in pieces]
    known = set(names)
    if any({left, right, left + right} - known for left, right in pairs):
        raise Unsupported("a merge of pieces, or to one, that the vocabulary does not have")
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens(pieces),
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": pretokenizer.parts()},
        "post_processor": template(names, before, after) if before or after else None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pretokenizer.whole_words,
            "vocab": {name: i for i, name in enumerate(names)},
            "merges": pairs,
        },
    }
    return json.dumps(document, ensure_ascii=False).encode()
