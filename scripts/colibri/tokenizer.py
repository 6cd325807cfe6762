# SPDX-License-Identifier: Apache-2.0
"""Text to ids and back on the host, by the checkpoint's own tokenizer.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import tokenizers

from colibri.errors import CheckpointError

_REPLACEMENT = "�"


class Tokenizer:
    """Encodes by the model's own rules (BOS and the like included); decodes a stream of ids to whole characters."""

    def __init__(self, raw: bytes, where: str) -> None:
        self._where = where
        with _as_ours(where, "a tokenizer.json that the tokenizers package reads"):
            self._tokenizer = tokenizers.Tokenizer.from_str(raw.decode("utf-8"))

    def encode(self, text: str) -> list[int]:
        """Ids of a prompt, special tokens added by the tokenizer's post-processor."""
        with _as_ours(self._where, "a tokenizer.json that encodes a text"):
            return list(self._tokenizer.encode(text).ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, special tokens left out."""
        with _as_ours(self._where, "a tokenizer.json that decodes ids"):
            return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def stream(self, ids: Iterable[int], context: Sequence[int] = ()) -> Iterator[str]:
        """The text of ids as they arrive; joined it equals `decode` of them all, whatever the split.

        context  ids that went before, whose text is not repeated
        """
        streamer = Streamer(self, context)
        for token in ids:
            yield streamer.send(token)
        yield streamer.finish()


@contextmanager
def _as_ours(where: str, expected: str) -> Iterator[None]:
    """Turn what the package raises into a CheckpointError: bare Exception for every defect, and a panic, which is none."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":
            raise
        got = "".join(c if c.isprintable() else " " for c in str(error)[:200]) or "an error without a message"
        hint = "take the file from the model's original folder"
        raise CheckpointError(where, expected=expected, got=got, hint=hint) from error


class Streamer:
    """Ids in, whole characters out: an unfinished UTF-8 sequence waits for its other bytes.

    shown  the text that is certain so far: at first the context's
    """

    def __init__(self, tokenizer: Tokenizer, context: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._ids = list(context)
        self.shown = tokenizer.decode(self._ids).rstrip(_REPLACEMENT)

    def send(self, token: int) -> str:
        """Take one id; return the text that became certain with it."""
        self._ids.append(token)
        text = self._tokenizer.decode(self._ids)
        if text.endswith(_REPLACEMENT) or not text.startswith(self.shown):
            return ""
        new, self.shown = text[len(self.shown) :], text
        return new

    def finish(self) -> str:
        """What still waits, as the tokenizer decodes it."""
        text = self._tokenizer.decode(self._ids)
        new, self.shown = text[len(self.shown) :], text
        return new
