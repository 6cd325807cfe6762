# SPDX-License-Identifier: Apache-2.0
"""How byte-level vocabularies cut a text before they merge, by the names that GGUF files (tokenizer.ggml.pre) have for it.

The patterns are those of the models' published tokenizer.json. A name that is not here is not guessed at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from colibri.text.bytelevel import GPT2_PATTERN

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def _words(digits: str, symbols: str = r" ?[^\s\p{L}\p{N}]+[\r\n]*") -> str:
    return rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}|{symbols}|{_SPACES}"


_LLAMA3 = _words(r"\p{N}{1,3}")
_QWEN2 = _words(r"\p{N}")
_QWEN35 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}|"
    rf" ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?|"
    rf"\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
)
_DEEPSEEK3 = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
    + _SPACES,
)


@dataclass(frozen=True)
class Pretokenizer:
    """Patterns applied one after the other, each cutting what the one before left.

    whole_words  a piece that is a token is not taken apart
    adds_bos     where the file does not say whether texts begin with BOS
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    adds_bos: bool = False

    def parts(self) -> list[dict[str, Any]]:
        """The pre-tokenizers of a tokenizer.json; the last makes characters of bytes."""
        splits = [
            {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in self.patterns
        ]
        return [*splits, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]


PRETOKENIZERS: dict[str, Pretokenizer] = {
    **dict.fromkeys(("gpt-2", "mpt", "olmo", "jais", "trillion", "phi-2"), Pretokenizer((GPT2_PATTERN,))),
    **dict.fromkeys(
        ("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"),
        Pretokenizer((r"\p{N}", GPT2_PATTERN)),
    ),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe"), Pretokenizer((_LLAMA3,), whole_words=True, adds_bos=True)),
    **dict.fromkeys(("falcon3", "lfm2"), Pretokenizer((_LLAMA3,), whole_words=True, adds_bos=True)),
    **dict.fromkeys(("dbrx", "smaug-bpe"), Pretokenizer((_LLAMA3,))),
    "glm4": Pretokenizer((_LLAMA3,), whole_words=True),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan"), Pretokenizer((_QWEN2,))),
    "qwen35": Pretokenizer((_QWEN35,)),
    **dict.fromkeys(("gpt-4o", "llama4", "minimax-m2"), Pretokenizer((_GPT4O,))),
    "deepseek-v3": Pretokenizer(_DEEPSEEK3),
}
