# SPDX-License-Identifier: Apache-2.0
"""Text to ids and back on the host, by the checkpoint's own tokenizer.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import tokenizers

from colibri.errors import CheckpointError, UsageError

_REPLACEMENT = "�"


class Tokenizer:
    """Encodes by the model's own rules (BOS and the like included); decodes a stream of ids to whole characters."""

    def __init__(self, raw: bytes, where: str) -> None:
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(raw.decode("utf-8"))
        except Exception as error:  # the package raises bare Exception for every defect
            raise CheckpointError(
                where,
                expected="a tokenizer.json that the tokenizers package reads",
                got=str(error)[:200],
                hint="take the file from the model's original folder",
            ) from error

    def encode(self, text: str) -> list[int]:
        """Ids of a prompt, special tokens added by the tokenizer's post-processor."""
        return list(self._tokenizer.encode(text).ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, special tokens left out."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def stream(self, ids: Iterable[int], context: list[int] | None = None) -> Iterator[str]:
        """The text as ids arrive; joined it equals `decode` of them all. An unfinished UTF-8 sequence waits.

        context  ids that went before, whose text is not repeated
        """
        before = list(context or [])
        shown = self.decode(before)
        for token in ids:
            before.append(token)
            text = self.decode(before)
            if text.startswith(shown) and not text.endswith(_REPLACEMENT):
                yield text[len(shown) :]
                shown = text
            else:
                yield ""
        text = self.decode(before)
        yield text[len(shown) :]


def load_tokenizer(raw: bytes | None, where: Path) -> Tokenizer:
    """The checkpoint's tokenizer. Raises UsageError where it has none."""
    if raw is None:
        raise UsageError(
            str(where),
            expected="a checkpoint with a tokenizer.json",
            got="none",
            hint="give token ids instead: a --prompts file with lines `ids: 1 2 3`",
        )
    return Tokenizer(raw, f"{where}: tokenizer.json")
