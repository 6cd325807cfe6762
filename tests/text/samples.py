# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of every kind, trained here on a few sentences, and random texts that hurt."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

STORIES = Path(__file__).resolve().parents[2] / "weights" / "stories-moe-3m" / "README.md"
FOREIGN = (
    "Über naïve café déjà-vu — 日本語のテキスト 中文字符 한국어 😀😃👍🏽 ١٢٣ 12345 67 don't I'll THEY'RE \t\n\r\n  x"
)
CORPUS = [*STORIES.read_text(encoding="utf-8").splitlines(), *[FOREIGN] * 20]

# As published with Llama 3, GPT-4o and gpt-oss, and DeepSeek V3.
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = (
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",  # noqa: RUF001
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
)
_BYTE_TOKENS = [f"<0x{b:02X}>" for b in range(256)]


def byte_level(*patterns: str, whole_words: bool = False, prefix: bool = False) -> Tokenizer:
    t = Tokenizer(models.BPE(ignore_merges=whole_words))
    if patterns:
        splits = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
        last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        t.pre_tokenizer = pre_tokenizers.Sequence([*splits, last])
    else:
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    t.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "</s>", "<|end|>"]
    t.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(vocab_size=700, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    around = [("<s>", 0), ("</s>", 1)]
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=around)
    return t


def character_bpe(scheme: str = "normalizer", *, split: bool = True, fallback: bool = True) -> Tokenizer:
    t = Tokenizer(models.BPE(byte_fallback=fallback, unk_token="<unk>", fuse_unk=True))
    if scheme == "normalizer":
        t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    t.decoder = _fallback_decoder()
    special = ["<unk>", "<s>", "</s>", *_BYTE_TOKENS]
    short = [line[:200] for line in CORPUS]
    t.train_from_iterator(short, trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False))
    return _plain_byte_tokens(t)


def unigram(scheme: str = "always", *, split: bool = True, fallback: bool = True) -> Tokenizer:
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    t.decoder = _fallback_decoder() if fallback else decoders.Metaspace(prepend_scheme=scheme)
    special = ["<unk>", "<s>", "</s>", *(_BYTE_TOKENS if fallback else [])]
    t.train_from_iterator(
        CORPUS, trainers.UnigramTrainer(vocab_size=500, special_tokens=special, unk_token="<unk>", show_progress=False)
    )
    document = json.loads(t.to_str())
    document["model"]["byte_fallback"] = fallback
    # as SentencePiece writes them: float32
    document["model"]["vocab"] = [
        [s, float(np.float32(round(score * 1024) / 1024))] for s, score in document["model"]["vocab"]
    ]
    return _plain_byte_tokens(Tokenizer.from_str(json.dumps(document)))


def with_added(t: Tokenizer) -> Tokenizer:
    """Tokens that take white space with them, that begin another, and that are looked for in normalised text."""
    left, right = AddedToken("<<left>>", lstrip=True), AddedToken("<<right>>", rstrip=True)
    t.add_tokens([left, right, AddedToken("<<", normalized=False), AddedToken("norm|", normalized=True)])
    return t


def normalised(t: Tokenizer) -> Tokenizer:
    t.normalizer = normalizers.NFC()
    return t


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "gpt2": byte_level,
    "gpt2 with prefix": lambda: with_added(byte_level(prefix=True)),
    "llama 3": lambda: with_added(byte_level(LLAMA3, whole_words=True)),
    "o200k": lambda: byte_level(O200K),
    "qwen": lambda: normalised(with_added(byte_level(LLAMA3))),
    "deepseek": lambda: byte_level(*DEEPSEEK),
    "llama 2": lambda: with_added(character_bpe()),
    "metaspace always": lambda: with_added(character_bpe("always")),
    "metaspace first": lambda: with_added(character_bpe("first", split=False)),
    "metaspace never, unknown": lambda: character_bpe("never", fallback=False),
    "unigram": lambda: with_added(unigram()),
    "unigram first, unknown": lambda: with_added(unigram("first", split=False, fallback=False)),
    "unigram never": lambda: unigram("never", fallback=False),
}

_POOLS = ("abcdefghij 'stremvld", "ABCDEF  \t\n\r\x0b\u00a0\u2003\u3000", "0123456789٣४②Ⅷ", ".,;:!?'\"-_/()<>[]")
_POOLS += ("éüßñçǅʰªº̀́̈", "日本語中文の한국어🇩🇪😀👍🏽\u200d", "▁▁ ")
_MARKS = "a\u0301\u0323\u0316\u0345\u1100\u1161\u11a8\uac00\u212b\u0958\u1e9b\u0344\u0f73\U0001d160\u0b92\u0bd7e\u0308"
_WORDS = (
    "<s>",
    "</s>",
    "<unk>",
    "<0x41>",
    "<<left>>",
    "<<right>>",
    "<<",
    "norm|",
    "<|end|>",
    "don't",
    " I'LL",
    "'\u017f",
)
_WORDS += ("Once upon a time", "Lily", "  ", "\n\n")


def random_text(rng: random.Random) -> str:
    out = []
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 13, 21, 40])):
        kind = rng.random()
        if kind < 0.15:
            out.append(rng.choice(_WORDS))
        elif kind < 0.3:
            out += [rng.choice(_MARKS) for _ in range(rng.randint(1, 8))]
        elif kind < 0.75:
            out += [rng.choice(rng.choice(_POOLS)) for _ in range(rng.randint(1, 6))]
        else:
            code = rng.randrange(0x110000 - 0x800)
            out.append(chr(code + 0x800 * (code >= 0xD800)))
    return "".join(out)


def _fallback_decoder() -> decoders.Decoder:
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    return decoders.Sequence(parts)


def _plain_byte_tokens(t: Tokenizer) -> Tokenizer:
    """Byte tokens are no added tokens; the trainer can only make them so."""
    document = json.loads(t.to_str())
    document["added_tokens"] = [a for a in document["added_tokens"] if a["content"] not in _BYTE_TOKENS]
    t = Tokenizer.from_str(json.dumps(document))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return t
