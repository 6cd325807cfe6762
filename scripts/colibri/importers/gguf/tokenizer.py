# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of a GGUF file (tokenizer.ggml.*) as a tokenizer.json, and the ids that begin and end a text.

A vocabulary that these rules cannot express is no reason to refuse the model: it then takes ids only, and says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from colibri.importers.gguf.metadata import Metadata
from colibri.importers.text import quoted
from colibri.text import merged, scored
from colibri.text.pretokenizers import PRETOKENIZERS, Pretokenizer
from colibri.text.rules import Unsupported
from colibri.text.scored import Kind, Piece

_PREFIX = "tokenizer.ggml."
_NO_VOCABULARY = ("none", "no_vocab")  # llama.cpp's words for a model of ids only, which must say one of them


@dataclass(frozen=True)
class Vocabulary:
    """What the file says of text. skipped: `tokenizer`, with the reason, where it is not used."""

    json: bytes | None
    bos_id: int | None
    eos_ids: tuple[int, ...]
    skipped: Mapping[str, str]


def read_tokenizer(metadata: Metadata, vocab_size: int) -> Vocabulary:
    """Read the vocabulary; raises CheckpointError for keys of the wrong type, and ids or a size that do not fit."""
    bos = _id(metadata, "bos", vocab_size)
    eos = _id(metadata, "eos", vocab_size)
    ends = tuple(dict.fromkeys(i for i in (eos, _id(metadata, "eot", vocab_size)) if i is not None))
    if not metadata.has(_PREFIX + "model") or metadata.text(_PREFIX + "model") in _NO_VOCABULARY:
        return Vocabulary(None, bos, ends, {})
    try:
        return Vocabulary(_json(metadata, vocab_size, bos, eos), bos, ends, {})
    except Unsupported as reason:
        return Vocabulary(None, bos, ends, {"tokenizer": f"it has {reason}: the model takes and gives ids"})


def _json(metadata: Metadata, vocab_size: int, bos: int | None, eos: int | None) -> bytes:
    model = metadata.text(_PREFIX + "model")
    if model not in ("llama", "gpt2"):
        raise Unsupported(f"a vocabulary of kind {quoted(model)}, not llama or gpt2")
    pretokenizer = _pretokenizer(metadata) if model == "gpt2" else None
    adds_bos = metadata.flag(_PREFIX + "add_bos_token", default=pretokenizer is None or pretokenizer.adds_bos)
    before = _around(bos, adds_bos)
    after = _around(eos, metadata.flag(_PREFIX + "add_eos_token", default=False))
    pieces = _pieces(metadata, vocab_size)
    if pretokenizer is None:
        prefix = metadata.flag(_PREFIX + "add_space_prefix", default=True)
        return scored.tokenizer_json(pieces, unigram=False, prefix=prefix, before=before, after=after)
    if metadata.flag(_PREFIX + "add_space_prefix", default=False):
        raise Unsupported("a space put before a byte-level text")
    merges = metadata.texts(_PREFIX + "merges")
    return merged.tokenizer_json(pieces, merges, pretokenizer, before=before, after=after)


def _pretokenizer(metadata: Metadata) -> Pretokenizer:
    name = metadata.text(_PREFIX + "pre") if metadata.has(_PREFIX + "pre") else "default"
    if name not in PRETOKENIZERS:
        raise Unsupported(f"the pre-tokenizer {quoted(name)}, which is unknown here")
    return PRETOKENIZERS[name]


def _pieces(metadata: Metadata, vocab_size: int) -> list[Piece]:
    texts = metadata.texts(_PREFIX + "tokens")
    n = len(texts)
    if n != vocab_size:
        raise metadata.error(_PREFIX + "tokens", f"{vocab_size} tokens, as the embedding has rows", f"{n}")
    scores, kinds = [0.0] * n, [int(Kind.NORMAL)] * n
    if metadata.has(_PREFIX + "scores"):
        scores = metadata.numbers(_PREFIX + "scores")
    if metadata.has(_PREFIX + "token_type"):
        kinds = metadata.integers(_PREFIX + "token_type", min(Kind), max(Kind))
    for key, found in (("scores", scores), ("token_type", kinds)):
        if len(found) != n:
            raise metadata.error(_PREFIX + key, f"{n} values, one a token", f"{len(found)}")
    return [Piece(text, score, Kind(kind)) for text, score, kind in zip(texts, scores, kinds, strict=True)]


def _id(metadata: Metadata, name: str, vocab_size: int) -> int | None:
    key = f"{_PREFIX}{name}_token_id"
    return metadata.integer(key, 0, vocab_size - 1) if metadata.has(key) else None


def _around(token: int | None, wanted: bool) -> tuple[int, ...]:
    return (token,) if wanted and token is not None else ()
