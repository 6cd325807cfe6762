# SPDX-License-Identifier: Apache-2.0
"""What a target answers as pieces of text, whichever side tokenises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from colibri.errors import NegativeVerdict
from colibri.tokenizer import Streamer, Tokenizer
from colibri_sim.qemu.frames import Message, PromptIds, Text, Token


@dataclass(frozen=True)
class Piece:
    """A token and the text that became readable with it.

    id    None: the prompt's text, or what still waited at the end
    text  whole characters; None: there is no tokenizer
    """

    id: int | None
    text: str | None


def read_on_host(
    answer: Iterable[Message], prompt: Sequence[int], tokenizer: Tokenizer | None, n_tokens: int, eos: Sequence[int]
) -> Iterator[Piece]:
    """The tokens of `generate`, with the host's tokenizer. n_tokens, eos: when no more can come."""
    new = (one.id for one in answer if isinstance(one, Token))
    if tokenizer is None:
        yield from (Piece(token, None) for token in new)
        return
    streamer = Streamer(tokenizer, prompt)
    yield Piece(None, streamer.shown)
    for count, token in enumerate(new):
        text = streamer.send(token)
        if count + 1 == n_tokens or token in eos:
            text += streamer.finish()
        yield Piece(token, text)
    yield Piece(None, streamer.finish())


def read_on_device(answer: Iterable[Message], prompt: Sequence[int]) -> Iterator[Piece]:
    """The text and the tokens of `text`, as the target sends them.

    prompt  the host's ids. Raises NegativeVerdict where the target's are others.
    """
    text = ""
    for one in answer:
        match one:
            case Text():
                text += one.text
            case PromptIds():
                if one.ids != tuple(prompt):
                    raise NegativeVerdict(
                        "the prompt's ids on the device",
                        expected=f"the host's: {list(prompt)}",
                        got=str(list(one.ids)),
                        hint="this is a bug of colibri, please report it",
                    )
                yield Piece(None, text)
                text = ""
            case Token():
                yield Piece(one.id, text)
                text = ""
