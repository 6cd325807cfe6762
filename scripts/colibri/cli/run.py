# SPDX-License-Identifier: Apache-2.0
"""colibri run: text in, text out, computed by the simulated board; the host only tokenises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from colibri.boards import Board
from colibri.cli import options, render, targets, workflow
from colibri.errors import NoVerdict, UsageError
from colibri.folder import Folder
from colibri.tokenizer import Streamer, Tokenizer
from colibri_sim.golden import Sampling
from colibri_sim.prompts import parse_prompt
from colibri_sim.qemu.frames import END, Status, Token, generate_request, message

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
        read_prompt(folder, prompt)  # a prompt that is refused is refused before the build
        elf = targets.built(folder, chosen, "generate", toolchain, opt, jobs)
        story(folder, chosen, elf, prompt, n_tokens, sampling, timeout, as_json=as_json)


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


def story(
    folder: Folder,
    board: Board,
    elf: Path,
    prompt: str,
    n_tokens: int,
    sampling: Sampling,
    timeout: float | None,
    *,
    as_json: bool,
) -> None:
    """Generate and show. Raises NoVerdict where the target ends with an error status."""
    ids, source, tokenizer = read_prompt(folder, prompt)
    # the last token needs no place in the context
    n_tokens = min(n_tokens, int(folder.manifest["settings"]["max_seq"]) - len(ids) + 1)
    eos = folder.manifest["eos_ids"][:4]
    request = generate_request(
        ids,
        n_tokens,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        seed=sampling.seed,
        eos=eos,
        source=source,
    )
    limit = targets.timeout_for(folder, len(ids) + n_tokens, timeout, n_source=len(source or ()))
    new = _tokens(folder, board, elf, request + END, limit)
    if as_json:
        _json_lines(new, n_tokens, eos, tokenizer, ids)
    else:
        _text(new, tokenizer, ids)


def read_prompt(folder: Folder, prompt: str) -> tuple[list[int], list[int] | None, Tokenizer | None]:
    """The ids that are continued, an encoder's source, and the tokenizer where there is one. Raises UsageError.

    With an encoder the prompt is the source, and the decoder begins with its start token.
    """
    raw = folder.tokenizer_json()
    tokenizer = Tokenizer(raw, f"{folder.path}: model_tokenizer.json") if raw else None
    vocab_size, max_seq = int(folder.manifest["vocab_size"]), int(folder.manifest["settings"]["max_seq"])
    max_source = folder.manifest["settings"].get("max_source")
    if max_source is None:
        return list(parse_prompt(prompt, "-p", vocab_size, max_seq, tokenizer).ids), None, tokenizer
    source = parse_prompt(prompt, "-p", vocab_size, max_source, tokenizer, "--max-source")
    return [folder.manifest["bos_id"] or 0], list(source.ids), tokenizer


def _tokens(folder: Folder, board: Board, elf: Path, request: bytes, limit: float) -> Iterator[int]:
    for frame in targets.frames(folder, board, elf, request, limit):
        got = message(frame)
        if isinstance(got, Token):
            yield got.id
        elif isinstance(got, Status) and got.code != 0:
            raise NoVerdict(
                board.name,
                expected="status 0 from the engine",
                got=f"status {got.code} at position {got.position}",
                hint="firmware/include/colibri/status.h says what it means; colibri verify finds where",
            )


def _text(new: Iterator[int], tokenizer: Tokenizer | None, prompt: list[int]) -> None:
    if tokenizer is None:
        for token in new:
            print(token, end=" ", flush=True)
    else:
        streamer = Streamer(tokenizer, prompt)
        print(streamer.shown, end="", flush=True)
        for token in new:
            print(streamer.send(token), end="", flush=True)
        print(streamer.finish(), end="")
    print()


def _json_lines(
    new: Iterator[int], n_tokens: int, eos: list[int], tokenizer: Tokenizer | None, prompt: list[int]
) -> None:
    """One line a token. `text` is what became readable with it: an unfinished character comes with a later one."""
    streamer = Streamer(tokenizer, prompt) if tokenizer is not None else None
    for count, token in enumerate(new):
        text = None
        if streamer is not None:
            text = streamer.send(token)
            if count + 1 == n_tokens or token in eos:
                text += streamer.finish()
        render.line({"position": len(prompt) + count, "id": token, "text": text})
