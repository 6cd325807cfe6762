# SPDX-License-Identifier: Apache-2.0
"""colibri run: text in, text out, computed by the simulated board; the host tokenises only where the image has no tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from colibri.boards import Board
from colibri.cli import options, render, targets, workflow
from colibri.cli.pieces import Piece, read_on_device, read_on_host
from colibri.errors import NoVerdict, UsageError
from colibri.folder import Folder
from colibri.tokenizer import Tokenizer
from colibri_sim.golden import Sampling
from colibri_sim.prompts import IDS, parse_prompt
from colibri_sim.qemu.frames import END, Message, Status, generate_request, message, text_request

_N_DEFAULT = 200


@click.command("run")
@options.TARGET
@options.BOARD
@options.settings_options
@click.option("-p", "--prompt", required=True, help="Text to continue, or `ids: 1 2 3`.")
@click.option(
    "-n", "n_tokens", type=options.IntegerType(1), default=_N_DEFAULT, show_default=True, help="New tokens at most."
)
@click.option("--temperature", type=float, help="0: greedy; otherwise 2**-7 to 2**7. [the checkpoint's]")
@click.option(
    "--top-k", type=options.IntegerType(0, (1 << 31) - 1), help="Only the k most likely; 0: all. [the checkpoint's]"
)
@click.option("--top-p", type=float, help="Only the most likely that reach this probability. [the checkpoint's]")
@click.option("--seed", type=options.IntegerType(), default=0, show_default=True, help="Of the random generator.")
@click.option("--greedy", is_flag=True, help="Always the most likely token.")
@options.build_and_run(allow_all=False)
def command(
    target: Path,
    board: str | None,
    prompt: str,
    n_tokens: int,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int,
    greedy: bool,
    toolchain: str,
    opt: str,
    jobs: int,
    timeout: float | None,
    work: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Continue a prompt on the simulated board; the text streams as it comes. With --json: one line a token."""
    with workflow.packed(target, board, values, work) as folder:
        chosen = workflow.board_of(folder)
        sampling = _sampling(folder, temperature, top_k, top_p, seed, greedy)
        start = read_prompt(folder, prompt)  # a prompt that is refused is refused before the build
        elf = targets.built(folder, chosen, start.application, toolchain, opt, jobs)
        story(folder, chosen, elf, start, n_tokens, sampling, timeout, as_json=as_json)


def _sampling(
    folder: Folder, temperature: float | None, top_k: int | None, top_p: float | None, seed: int, greedy: bool
) -> Sampling:
    """The checkpoint's defaults with what the command line says."""
    default = folder.generation
    wanted = 0.0 if greedy else temperature
    try:
        return Sampling(
            default.temperature if wanted is None else wanted,
            default.top_k if top_k is None else top_k,
            default.top_p if top_p is None else top_p,
            seed,
        )
    except ValueError as error:
        raise UsageError(
            "--temperature, --top-k, --top-p, --seed",
            expected="values in range",
            got=str(error),
            hint="see colibri run -h",
        ) from error


@dataclass(frozen=True)
class Start:
    """A prompt as a folder's target takes it.

    application  what continues it: `text` where the image has the tokenizer, unless the prompt is ids already
    ids          what is continued
    source       what an encoder reads; None: there is none
    """

    prompt: str
    application: Literal["generate", "text"]
    ids: list[int]
    source: list[int] | None
    tokenizer: Tokenizer | None


def _check_bytes(folder: Folder, prompt: str) -> None:
    n_bytes, limit = len(prompt.encode("utf-8", "replace")), folder.text_bytes
    if limit is not None and n_bytes > limit:
        raise UsageError(
            "-p",
            expected=f"a prompt of at most {limit} bytes, for which {folder.path} was packed",
            got=f"{n_bytes} bytes",
            hint=f"shorten it, or pack again with --text {n_bytes}",
        )


def story(
    folder: Folder,
    board: Board,
    elf: Path,
    start: Start,
    n_tokens: int,
    sampling: Sampling,
    timeout: float | None,
    *,
    as_json: bool,
) -> None:
    """Generate and show. elf: of the start's application. Raises NoVerdict where the target ends with an error status."""
    ids, source = start.ids, start.source
    # the last token needs no place in the context
    n_tokens = min(n_tokens, int(folder.manifest["settings"]["max_seq"]) - len(ids) + 1)
    eos = folder.manifest["eos_ids"][:4]
    how = {**vars(sampling), "eos": eos}
    limit = targets.timeout_for(folder, len(ids) + n_tokens, timeout, n_source=len(source or ()))
    if start.application == "text":
        request = text_request(start.prompt.encode(), n_tokens, **how)
        pieces = read_on_device(_answer(folder, board, elf, request + END, limit), ids)
    else:
        request = generate_request(ids, n_tokens, source=source, **how)
        pieces = read_on_host(_answer(folder, board, elf, request + END, limit), ids, start.tokenizer, n_tokens, eos)
    if as_json:
        _json_lines(pieces, len(ids))
    else:
        _text(pieces)


def read_prompt(folder: Folder, prompt: str) -> Start:
    """With an encoder the prompt is its source, and the decoder begins with its start token.

    Raises UsageError for a prompt that the target would refuse.
    """
    raw = folder.tokenizer_json()
    tokenizer = Tokenizer(raw, f"{folder.path}: model_tokenizer.json") if raw else None
    vocab_size, max_ids = int(folder.manifest["vocab_size"]), int(folder.manifest["settings"]["max_seq"])
    max_source = folder.manifest["settings"].get("max_source")
    if max_source is not None:
        source = parse_prompt(prompt, "-p", vocab_size, max_source, tokenizer, "--max-source")
        return Start(prompt, "generate", [folder.manifest["bos_id"] or 0], list(source.ids), tokenizer)
    on_device = folder.text_bytes is not None and not prompt.startswith(IDS)
    if on_device:
        _check_bytes(folder, prompt)
        max_ids = min(max_ids, vocab_size)  # they lie where the logits will be
    ids = list(parse_prompt(prompt, "-p", vocab_size, max_ids, tokenizer).ids)
    return Start(prompt, "text" if on_device else "generate", ids, None, tokenizer)


def _answer(folder: Folder, board: Board, elf: Path, request: bytes, limit: float) -> Iterator[Message]:
    for frame in targets.frames(folder, board, elf, request, limit):
        got = message(frame)
        if isinstance(got, Status) and got.code != 0:
            raise NoVerdict(
                board.name,
                expected="status 0 from the engine",
                got=f"status {got.code} at position {got.position}",
                hint="firmware/include/colibri/status.h says what it means; colibri verify finds where",
            )
        yield got


def _text(pieces: Iterator[Piece]) -> None:
    for piece in pieces:
        print(f"{piece.id} " if piece.text is None else piece.text, end="", flush=True)
    print()


def _json_lines(pieces: Iterator[Piece], n_prompt: int) -> None:
    """One line a token. `text` is what became readable with it: an unfinished character comes with a later one."""
    new = (piece for piece in pieces if piece.id is not None)
    for count, piece in enumerate(new):
        render.line({"position": n_prompt + count, "id": piece.id, "text": piece.text})
