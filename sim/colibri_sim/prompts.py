# SPDX-License-Identifier: Apache-2.0
"""The prompts that verification replays: built-in ones, or a file's."""

from __future__ import annotations

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
    """Four prompts of up to 32 positions; without a tokenizer, ids drawn from a fixed seed."""
    n = min(POSITIONS, config.max_seq)
    if tokenizer is None:
        drawn = np.random.Generator(np.random.PCG64(_SEED)).integers(0, config.vocab_size, (len(_TEXTS), n))
        return [Prompt(tuple(int(i) for i in row)) for row in drawn]
    return [Prompt(tuple(tokenizer.encode(text)[:n]), text) for text in _TEXTS]


def read_prompts(path: Path, config: ModelConfig, tokenizer: Tokenizer | None) -> list[Prompt]:
    """One prompt a line: text, or ``ids: 1 2 3``; empty lines are passed over. Raises UsageError."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--prompts {path}", expected="a UTF-8 text file", got=str(error), hint="check the path"
        ) from error
    prompts = [
        parse_prompt(line, f"{path}:{n}", config.vocab_size, config.max_seq, tokenizer)
        for n, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not prompts:
        raise UsageError(
            f"--prompts {path}", expected="at least one prompt", got="none", hint="write one prompt a line"
        )
    return prompts


def parse_prompt(line: str, where: str, vocab_size: int, max_seq: int, tokenizer: Tokenizer | None) -> Prompt:
    """Text for the tokenizer, or ``ids: 1 2 3``. Raises UsageError for what the engine would refuse."""
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
    check_ids(prompt.ids, where, vocab_size, max_seq)
    return prompt


def parse_ids(text: str, where: str) -> tuple[int, ...]:
    """Integers separated by commas or blanks. Raises UsageError."""
    try:
        return tuple(int(word, 0) for word in text.replace(",", " ").split())
    except ValueError as error:
        raise UsageError(where, expected="token ids", got=f"'{text.strip()}'", hint="e.g. 1,17,93") from error


def check_ids(ids: tuple[int, ...], where: str, vocab_size: int, max_seq: int) -> None:
    """Refuse ids the engine would refuse. Raises UsageError."""
    if not 1 <= len(ids) <= max_seq:
        raise UsageError(
            where,
            expected=f"1 to {max_seq} tokens",
            got=str(len(ids)),
            hint="shorten it, or raise --max-seq" if ids else "write at least one token",
        )
    for token in ids:
        if not 0 <= token < vocab_size:
            raise UsageError(
                where, expected=f"ids from 0 to {vocab_size - 1}", got=str(token), hint="check the vocabulary size"
            )
