# SPDX-License-Identifier: Apache-2.0
"""The command: what is measured on which boards, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from colibri.boards import Board, load_board
from colibri.cli import options, render, targets, workflow
from colibri.cli.bench import constant_time as timing
from colibri.cli.bench import estimate as estimates
from colibri.cli.bench import instructions
from colibri.cli.bench import kernels as kernel_bench
from colibri.cli.bench import serial as cycles
from colibri.cli.bench.report import Build, summary
from colibri.errors import NegativeVerdict, UsageError
from colibri.folder import is_folder
from colibri_sim.serial import SerialPort


@click.command("bench")
@click.argument("target", metavar="DIR|CHECKPOINT", type=click.Path(path_type=Path), required=False)
@click.option(
    "-b", "--board", "boards", metavar="BOARD", multiple=True, help="A board; may be repeated. [all that fit]"
)
@options.settings_options_of_bench
@options.SERIAL
@click.option(
    "--kernels", is_flag=True, help="Instead: each kernel by itself, on one board; takes no DIR or CHECKPOINT."
)
@click.option("--estimate", is_flag=True, help="Instead: cycles per token, as an estimate with two bounds.")
@click.option(
    "--constant-time",
    is_flag=True,
    help="Instead: does what a step executes and accesses depend on the position alone?",
)
@options.build_and_run(allow_all=True)
def command(
    target: Path | None,
    boards: tuple[str, ...],
    serial: SerialPort | None,
    kernels: bool,
    estimate: bool,
    constant_time: bool,
    toolchain: str,
    opt: str,
    jobs: int,
    timeout: float | None,
    work: Path | None,
    as_json: bool,
    **values: Any,
) -> int:
    """Count the instructions of each token (of a real board, cycles), and report code, RAM and bytes of weights read."""
    modes = {
        **{"--serial": serial is not None, "--kernels": kernels},
        **{"--estimate": estimate, "--constant-time": constant_time},
    }
    _only_one(modes)
    values = {**values, "kernels": None}
    if kernels:
        board = _one_board(target, boards, toolchain, values)
        document = kernel_bench.measure(board, toolchain, opt, jobs, timeout)
        _show(document, kernel_bench.table, as_json=as_json)
        return 0
    if target is None:
        raise UsageError(
            "bench", expected="DIR or CHECKPOINT", got="none", hint="only --kernels takes none: colibri bench --help"
        )
    if serial is not None:
        targets.flashed(target, "bench", toolchain, opt, serial)
    chosen: Sequence[str | None] = boards
    if not boards:
        suits = estimates.is_modelled if estimate else timing.is_traceable if constant_time else _any
        chosen = [None] if is_folder(target) else _fitting(target, values, suits)

    def results(measure: Callable[[Build], dict[str, Any]]) -> dict[str, Any]:
        builds = (
            Build(folder, workflow.board_of(folder), one, opt, jobs)
            for folder in workflow.packed_each(target, chosen, values, work)
            for one in options.toolchains(toolchain)
        )
        return {"results": [measure(build) for build in builds]}

    if serial is not None:
        _show(results(lambda build: cycles.measure(build, timeout, serial)), cycles.table, as_json=as_json)
    elif estimate:
        _show(results(lambda build: estimates.measure(build, timeout)), estimates.table, as_json=as_json)
    elif constant_time:
        document = results(lambda build: timing.measure(build, timeout))
        _show(document, timing.table, as_json=as_json)
        return 0 if all(one["holds"] for one in document["results"]) else NegativeVerdict.exit_code
    else:
        _show(results(lambda build: instructions.measure(build, timeout)), _tables, as_json=as_json)
    return 0


def _show(document: dict[str, Any], text: Callable[[dict[str, Any]], str], *, as_json: bool) -> None:
    if as_json:
        render.document(document)
    else:
        print(text(document))


def _tables(document: dict[str, Any]) -> str:
    note = (
        "instructions per token under QEMU (not cycles) at the positions named; engine, RAM and weights read in bytes"
    )
    results = document["results"]
    return f"{summary(results, 'instructions_per_token')}\n{note}\n\n{instructions.by_operator(results)}"


def _only_one(modes: dict[str, bool]) -> None:
    given = [name for name, is_given in modes.items() if is_given]
    if len(given) > 1:
        raise UsageError(
            given[1], expected=f"one of {', '.join(modes)}", got=" ".join(given), hint="run bench once for each"
        )


def _any(board: Board) -> bool:
    return True


def _fitting(target: Path, values: dict[str, Any], suits: Callable[[Board], bool]) -> list[str]:
    return [name for name in workflow.fitting_boards(target, values) if suits(load_board(name))]


def _one_board(target: Path | None, boards: tuple[str, ...], toolchain: str, values: dict[str, Any]) -> Board:
    """The board of --kernels, which measures no model. Raises UsageError for what belongs to one, and for several boards."""
    settings = options.given_settings(values)
    wrong = [
        *([] if target is None else [str(target)]),
        *settings,
        *(["--toolchain all"] if toolchain == "all" else []),
    ]
    if len(boards) != 1 or wrong:
        raise UsageError(
            "--kernels",
            expected="one board, one toolchain and no model",
            got=" ".join(wrong) or f"{len(boards)} boards",
            hint="colibri bench --kernels -b BOARD --toolchain gcc",
        )
    return load_board(boards[0])
