# SPDX-License-Identifier: Apache-2.0
"""What text in and text out take of the device: tables and code in flash, arrays in RAM, instructions a character."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from colibri.data import data_path
from colibri.errors import UsageError
from colibri.layout.budget import budget
from colibri.text.device import DeviceTokenizer

APP = "text"
PROMPT_BYTES = 512
"""For which a plan is made that does not say (`--text`)."""

SAMPLE_CHARACTERS = 496
"""Of the English text with which instructions are counted: linker/instructions.toml holds those of the whole text."""

_HELD_BYTES = 256
"""COLIBRI_DETOKENIZE_HELD of firmware/include/colibri/tokenizer.h."""
_STREAM_BYTES = 4 + _HELD_BYTES
"""sizeof(colibri_detokenizer_t)."""


@dataclass(frozen=True)
class TextUse:
    """A tokenizer on a board. Bytes.

    in_image    whether the image has it; otherwise the numbers say what it would take
    code_bytes  bound of what the application has more than `generate`
    """

    board: str
    tokenizer: DeviceTokenizer
    prompt_bytes: int
    in_image: bool

    @property
    def table_bytes(self) -> int:
        """Flash of the tables, exactly."""
        return len(self.tokenizer.tables or b"")

    @property
    def code_bytes(self) -> int:
        """A bound of the flash of what the application has more than `generate`."""
        return budget(self.board, None, APP).code_bytes - budget(self.board, None, "generate").code_bytes

    @property
    def workspace_bytes(self) -> int:
        """What `colibri_tokenize` needs for any prompt of that length, and `colibri_detokenize` for a token and the end."""
        factor = 56 if self.tokenizer.nfc else 17  # COLIBRI_TOKENIZE_WORKSPACE_BYTES and its form for NFC
        decoded = 3 * self.tokenizer.longest_bytes + 3 * _HELD_BYTES
        needed = max(factor * self.prompt_bytes + 64, 2 * decoded)
        return -(-needed // 8) * 8

    @property
    def array_bytes(self) -> int:
        """RAM, exactly: the workspace, what of a character still waits for its other bytes, and the prompt."""
        return -(-(self.workspace_bytes + _STREAM_BYTES + self.prompt_bytes) // 8) * 8

    def to_json(self) -> dict[str, Any]:
        """The field `text` of `plan --json`."""
        if self.tokenizer.tables is None:
            return {"unsupported": self.tokenizer.reason}
        return {
            "algorithm": self.tokenizer.algorithm,
            "in_image": self.in_image,
            "prompt_bytes": self.prompt_bytes,
            "table_bytes": self.table_bytes,
            "code_bytes": self.code_bytes,
            "array_bytes": self.array_bytes,
            "instructions_per_character": self.instructions_per_character(),
        }

    def instructions_per_character(self) -> dict[str, float]:
        """By compiler version: of `colibri_tokenize`, where that was measured for the board and the algorithm."""
        return {
            words[1]: round(figures[self.tokenizer.algorithm] / SAMPLE_CHARACTERS, 1)
            for name, figures in _figures().items()
            if (words := name.split())[0] == self.board and words[2] == APP and self.tokenizer.algorithm in figures
        }


def text_use(tokenizer: DeviceTokenizer | None, board: str, prompt_bytes: int | None) -> TextUse | None:
    """What a tokenizer takes on a board; None: the checkpoint has none.

    prompt_bytes  of the longest prompt, where the image gets the tokenizer; None: it does not

    Raises UsageError as `check_text`.
    """
    check_text(tokenizer, prompt_bytes)
    if tokenizer is None:
        return None
    return TextUse(board, tokenizer, prompt_bytes or PROMPT_BYTES, prompt_bytes is not None)


def check_text(tokenizer: DeviceTokenizer | None, prompt_bytes: int | None) -> None:
    """Raise UsageError where the image is to have a tokenizer (prompt_bytes) and there is none for the device."""
    if prompt_bytes is not None and (tokenizer is None or tokenizer.tables is None):
        raise UsageError(
            "--text",
            expected="a checkpoint whose tokenizer the device can have",
            got="one without a tokenizer" if tokenizer is None else f"one with {tokenizer.reason}",
            hint="leave the option out: colibri run then turns text into ids on the host"
            if tokenizer is not None
            else "put the model's tokenizer.json into the checkpoint's folder, or leave the option out",
        )


@cache
def _figures() -> dict[str, dict[str, int]]:
    with (data_path("linker") / "instructions.toml").open("rb") as file:
        return tomllib.load(file)
