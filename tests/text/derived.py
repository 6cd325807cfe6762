# SPDX-License-Identifier: Apache-2.0
"""The demo's tokenizer in each algorithm: 512 tokens, and the same bytes everywhere, for none of it is trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from colibri.text.device import Algorithm

DEMO = Path(__file__).resolve().parents[2] / "weights" / "stories-moe-3m" / "tokenizer.json"
N_TOKENS = 512
SPACE = "▁"
_SPECIAL = ["<unk>", "<s>", "</s>"]
_CHARACTERS = [SPACE, *(chr(c) for c in range(0x21, 0x7F) if chr(c) != "<"), "é", "日", "😀"]
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def tokenizer_json(algorithm: Algorithm) -> bytes:
    """Bytes: the demo's own. Characters: its merges, as far as they fit beside byte tokens. Unigram: the same tokens, longer ones
    likelier than their parts."""
    own = json.loads(DEMO.read_text("utf-8"))
    if algorithm == "bytes":
        return DEMO.read_bytes()
    tokens, merges = _merged([tuple(pair) for pair in own["model"]["merges"]])
    common: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": own["added_tokens"],
        "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
        "post_processor": own["post_processor"],
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
    }
    if algorithm == "characters":
        vocab = {token: i for i, token in enumerate(tokens)}
        model: dict[str, Any] = {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": "<unk>"}
        model |= {"fuse_unk": True, "byte_fallback": True}
    else:
        scores = [[token, -8.0 - i / 256 - len(token) / 4] for i, token in enumerate(tokens)]
        model = {"type": "Unigram", "vocab": scores, "unk_id": 0, "byte_fallback": True}
    return json.dumps({**common, "model": model}).encode()


def _merged(merges: list[tuple[str, ...]]) -> tuple[list[str], list[list[str]]]:
    """Special tokens, characters, what they merge to, bytes: N_TOKENS; and the merges."""
    tokens = [*_SPECIAL, *_CHARACTERS]
    kept: list[list[str]] = []
    for pair in merges:
        left, right = (part.replace("Ġ", SPACE) for part in pair)
        if len(tokens) + len(_BYTES) < N_TOKENS and left in tokens and right in tokens and left + right not in tokens:
            tokens.append(left + right)
            kept.append([left, right])
    return [*tokens, *_BYTES], kept
