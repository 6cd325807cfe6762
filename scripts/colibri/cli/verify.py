# SPDX-License-Identifier: Apache-2.0
"""colibri verify: the firmware against the golden model, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from colibri.boards import Board
from colibri.cli import options, render, targets, workflow
from colibri.errors import ColibriError, NegativeVerdict, NoVerdict, ToolError, UsageError
from colibri.folder import Folder, is_folder
from colibri.tokenizer import Tokenizer
from colibri_sim.golden import TraceName
from colibri_sim.prompts import read_prompts
from colibri_sim.serial import SerialPort
from colibri_sim.vectors import IN_SOURCE, make_vectors, source_tensors, tensors_at
from colibri_sim.verify import Run, Tensors, Verdict, verify


@dataclass(frozen=True)
class Result:
    """One board and toolchain: a verdict, or why there is none."""

    board: str
    toolchain: str
    opt: str
    quant: str
    verdict: Verdict | None
    error: ColibriError | None = None

    @property
    def status(self) -> str:
        """exact, differs, no_verdict or not_run."""
        if self.verdict is not None:
            return "exact" if self.verdict.bit_exact else "differs"
        return "no_verdict" if isinstance(self.error, NoVerdict) else "not_run"

    def to_json(self) -> dict[str, Any]:
        """The row of the JSON document."""
        difference = self.verdict.first_difference if self.verdict else None
        return {
            "board": self.board,
            "toolchain": self.toolchain,
            "opt": self.opt,
            "quant": self.quant,
            "positions": self.verdict.positions if self.verdict else 0,
            "status": self.status,
            "bit_exact": self.verdict.bit_exact if self.verdict else None,
            "first_difference": None if difference is None else vars(difference),
            "reason": None if self.error is None else str(self.error),
        }


@click.command("verify")
@options.TARGET
@click.option("-b", "--board", "boards", metavar="BOARD", multiple=True, help="A board; may be repeated.")
@click.option("--all-boards", is_flag=True, help="Every board on which the model fits.")
@options.settings_options
@click.option("--prompts", type=click.Path(path_type=Path), help="Prompts to replay, one a line. [those packed]")
@options.SERIAL
@options.build_and_run(allow_all=True)
def command(
    target: Path,
    boards: tuple[str, ...],
    all_boards: bool,
    prompts: Path | None,
    serial: SerialPort | None,
    toolchain: str,
    opt: str,
    jobs: int,
    timeout: float | None,
    work: Path | None,
    as_json: bool,
    **values: Any,
) -> int:
    """Replay prompts on the simulated board, or a real one, and compare every operator's output with the golden model's bits."""
    chosen: list[str | None] = list(boards)
    if all_boards:
        if is_folder(target) or boards:
            raise UsageError(
                "--all-boards", expected="a checkpoint and no -b", got="both", hint="a packed folder is for one board"
            )
        chosen = list(workflow.fitting_boards(target, values))
    if serial is not None:
        targets.flashed(target, "verify", toolchain, opt, serial)
    run = _Runner(prompts, options.toolchains(toolchain), opt, jobs, timeout, serial)
    results: list[Result] = []
    for folder in workflow.packed_each(target, chosen or [None], values, work):
        for result in run.results(folder):
            results.append(result)
            if not as_json:
                _show(result)
    if as_json:
        render.document({"results": [result.to_json() for result in results]})
    return _exit_code(results)


@dataclass(frozen=True)
class _Runner:
    prompts: Path | None
    toolchains: tuple[str, ...]
    opt: str
    jobs: int
    timeout: float | None
    serial: SerialPort | None

    def results(self, folder: Folder) -> Iterator[Result]:
        """Build and verify with each toolchain. A missing tool or a dead simulator is a result, not the end."""
        board = workflow.board_of(folder)
        vectors = folder.vectors() if self.prompts is None else _vectors_of(folder, self.prompts)
        positions = sum(len(prompt["ids"]) for prompt in vectors["prompts"])
        n_source = sum(len(prompt.get("source") or ()) for prompt in vectors["prompts"])
        limit = targets.timeout_for(folder, 2 * positions, self.timeout, 2 * n_source)
        for toolchain in self.toolchains:
            row = (board.name, toolchain, self.opt, folder.quant)
            try:
                yield Result(*row, self._verdict(folder, board, toolchain, vectors, limit))
            except (NoVerdict, ToolError) as error:
                yield Result(*row, None, error)

    def _verdict(self, folder: Folder, board: Board, toolchain: str, vectors: dict[str, Any], limit: float) -> Verdict:
        if self.serial is not None:
            at_port = targets.flashed(folder.path, "verify", toolchain, self.opt, self.serial)
            return _over_serial(at_port, vectors, self.timeout)
        elf = targets.built(folder, board, "verify", toolchain, self.opt, self.jobs)
        run: Run = lambda request: targets.frames(folder, board, elf, request, limit)  # noqa: E731
        return verify(run, vectors, golden_tensors(folder))


def _over_serial(board: targets.Flashed, vectors: dict[str, Any], timeout: float | None) -> Verdict:
    """A difference counts where it comes again: a line may damage what no checksum shows. Raises NoVerdict where it does not."""
    positions = 2 * sum(len(prompt["ids"]) for prompt in vectors["prompts"])
    at_position = 4 * (int(board.folder.manifest["vocab_size"]) + len(vectors["trace"])) + 64
    limit = board.timeout_for(positions, at_position, timeout)
    run: Run = lambda request: board.frames(request, limit)  # noqa: E731
    tensors = golden_tensors(board.folder)
    verdict = verify(run, vectors, tensors)
    if verdict.bit_exact:
        return verdict
    again = verify(run, vectors, tensors)
    if again != verdict:
        raise NoVerdict(
            str(board.port),
            expected="the same answer twice",
            got=f"first {verdict.first_difference}; then {again.first_difference or 'no difference'}",
            hint="the line or the board is not reliable: check power, clock and cable",
        )
    return verdict


def golden_tensors(folder: Folder) -> Tensors | None:
    """The golden model of the folder's checkpoint, to find a differing element; None where the checkpoint has gone."""
    origin = folder.origin("checkpoint")
    if origin is None or not origin.exists():
        return None

    def tensors(ids: Sequence[int], position: int, source: Sequence[int] | None) -> Mapping[TraceName, Any]:
        golden = workflow.golden_of(folder)
        if position == IN_SOURCE:
            return source_tensors(golden, source or ())
        return tensors_at(golden, ids, position, source)

    return tensors


def _vectors_of(folder: Folder, prompts: Path) -> dict[str, Any]:
    """Vectors for prompts that were not packed: the golden model runs now, from the checkpoint."""
    golden = workflow.golden_of(folder)
    raw = folder.tokenizer_json()
    tokenizer = Tokenizer(raw, str(folder.path)) if raw else None
    chosen = read_prompts(prompts, golden.config, tokenizer)
    return make_vectors(golden, chosen, quant=folder.quant, kv=folder.manifest["settings"]["kv"])


def _show(result: Result) -> None:
    head = f"{result.board} {result.toolchain} -O{result.opt} {result.quant}"
    if result.verdict is None:
        assert result.error is not None
        print(f"{head}: {result.status.replace('_', ' ')}: {result.error}\n  hint: {result.error.hint}", flush=True)
    elif result.verdict.first_difference is None:
        print(f"{head}: bit-exact at {result.verdict.positions} positions", flush=True)
    else:
        print(f"{head}: DIFFERS first at {result.verdict.first_difference}", flush=True)


def _exit_code(results: list[Result]) -> int:
    """1 before 5 before 4."""
    statuses = {result.status for result in results}
    if "differs" in statuses:
        return NegativeVerdict.exit_code
    if "no_verdict" in statuses:
        return NoVerdict.exit_code
    return ToolError.exit_code if "not_run" in statuses else 0
