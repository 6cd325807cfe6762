# SPDX-License-Identifier: Apache-2.0
"""The prompts that verification replays: built-in ones, or a file's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colibri.errors import UsageError
from colibri.model import ModelConfig
from colibri.tokenizer import Tokenizer
from colibri_sim.vectors import Prompt

IDS = "ids:"
"""How a prompt begins that is no text."""

POSITIONS = 32
"""Tokens of a built-in prompt; the built-in texts are cut to them."""

_TEXTS = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the sun with her dog, and "
    "every day they went to the big park together.",
    "One day, Tom and his mom went to the store to buy some apples. The man at the store was very kind and gave them a "
    "red ball, and Tom said thank you.",
    "The old cat sat on the table near the window and looked at the rain. It was sad because it could not go out and "
    "play with the small birds in the tree.",
    "Ben wanted to build a tall tower with his blocks. His sister helped him, but the tower fell down with a loud "
    "noise, and they laughed and started again.",
)
_SEED = 20260101


def builtin_prompts(config: ModelConfig, tokenizer: Tokenizer | None) -> list[Prompt]:
    """Four prompts of up to 32 positions; without a tokenizer, ids drawn from a fixed seed.

    For an encoder the texts are sources; what the decoder reads is the id it starts with, and ids drawn from the seed.
    """
    n = min(POSITIONS, config.max_seq)
    drawn = _drawn(config, n)
    if config.encoder is None:
        texts = drawn if tokenizer is None else [tuple(tokenizer.encode(text)[:n]) for text in _TEXTS]
        return [Prompt(ids, text) for ids, text in zip(texts, _labels(tokenizer), strict=True)]
    n_source = min(POSITIONS, config.encoder.max_source)
    if tokenizer is None:
        sources = _drawn(config, n_source, _SEED + 1)
    else:
        sources = [tuple(tokenizer.encode(text)[:n_source]) for text in _TEXTS]
    started = [(*decoder_start(config), *ids)[:n] for ids in drawn]
    return [Prompt(*row) for row in zip(started, _labels(tokenizer), sources, strict=True)]


def _drawn(config: ModelConfig, n: int, seed: int = _SEED) -> list[tuple[int, ...]]:
    drawn = np.random.Generator(np.random.PCG64(seed)).integers(0, config.vocab_size, (len(_TEXTS), n))
    return [tuple(int(i) for i in row) for row in drawn]


def _labels(tokenizer: Tokenizer | None) -> Sequence[str | None]:
    return _TEXTS if tokenizer is not None else [None] * len(_TEXTS)


def decoder_start(config: ModelConfig) -> tuple[int, ...]:
    """What a decoder behind an encoder begins with: its start token, where the checkpoint names one; else token 0."""
    return (0,) if config.bos_id is None else (config.bos_id,)


def read_prompts(path: Path, config: ModelConfig, tokenizer: Tokenizer | None) -> list[Prompt]:
    """One prompt a line: text, or ``ids: 1 2 3``; empty lines are passed over. Raises UsageError.

    For an encoder a line is a source. `` -> ids: 0 17`` behind it is what the decoder reads; without it, its start token.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--prompts {path}", expected="a UTF-8 text file", got=str(error), hint="check the path"
        ) from error
    prompts = [_parse_line(line, f"{path}:{n}", config, tokenizer) for n, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise UsageError(
            f"--prompts {path}", expected="at least one prompt", got="none", hint="write one prompt a line"
        )
    return prompts


_ARROW = f" -> {IDS}"


def _parse_line(line: str, where: str, config: ModelConfig, tokenizer: Tokenizer | None) -> Prompt:
    if config.encoder is None:
        return parse_prompt(line, where, config.vocab_size, config.max_seq, tokenizer)
    text, arrow, ids = line.partition(_ARROW)
    source = parse_prompt(text, where, config.vocab_size, config.encoder.max_source, tokenizer, "--max-source")
    sequence = parse_ids(ids, where) if arrow else decoder_start(config)
    check_ids(sequence, where, config.vocab_size, config.max_seq)
    return Prompt(sequence, source.text, source.ids)


def parse_prompt(
    line: str, where: str, vocab_size: int, longest: int, tokenizer: Tokenizer | None, option: str = "--max-seq"
) -> Prompt:
    """Text for the tokenizer, or ``ids: 1 2 3``. Raises UsageError for what the engine would refuse.

    longest  what the engine was packed for with `option`, in tokens
    """
    if line.startswith(IDS):
        prompt = Prompt(parse_ids(line.removeprefix(IDS), where))
    elif tokenizer is None:
        raise UsageError(
            where,
            expected="token ids: the checkpoint has no tokenizer.json",
            got=f"'{line}'",
            hint="write ids, e.g. `ids: 1 17 93`",
        )
    else:
        prompt = Prompt(tuple(tokenizer.encode(line)), line)
    check_ids(prompt.ids, where, vocab_size, longest, option)
    return prompt


def parse_ids(text: str, where: str) -> tuple[int, ...]:
    """Integers separated by commas or blanks. Raises UsageError."""
    try:
        return tuple(int(word, 0) for word in text.replace(",", " ").split())
    except ValueError as error:
        raise UsageError(where, expected="token ids", got=f"'{text.strip()}'", hint="e.g. 1,17,93") from error


def check_ids(ids: tuple[int, ...], where: str, vocab_size: int, longest: int, option: str = "--max-seq") -> None:
    """Refuse ids the engine would refuse. Raises UsageError."""
    if not 1 <= len(ids) <= longest:
        raise UsageError(
            where,
            expected=f"1 to {longest} tokens",
            got=str(len(ids)),
            hint=f"shorten it, or raise {option}" if ids else "write at least one token",
        )
    for token in ids:
        if not 0 <= token < vocab_size:
            raise UsageError(
                where, expected=f"ids from 0 to {vocab_size - 1}", got=str(token), hint="check the vocabulary size"
            )
