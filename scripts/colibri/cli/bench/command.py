# SPDX-License-Identifier: Apache-2.0
"""The command: what is measured on which boards, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from colibri.boards import Board, load_board
from colibri.cli import options, render, targets, workflow
from colibri.cli.bench import constant_time as timing
from colibri.cli.bench import instructions
from colibri.cli.bench import kernels as kernel_bench
from colibri.cli.bench.report import Build, summary
from colibri.cli.bench.serial import measure as serial_measure
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
    _only_one({"--serial": serial is not None, "--kernels": kernels, "--constant-time": constant_time})
    if kernels:
        board = _one_board(target, boards, toolchain, values)
        document = kernel_bench.measure(board, toolchain, opt, jobs, timeout)
        if as_json:
            render.document(document)
        else:
            print(kernel_bench.table(document))
        return 0
    if target is None:
        raise UsageError(
            "bench", expected="DIR or CHECKPOINT", got="none", hint="only --kernels takes none: colibri bench --help"
        )
    values = {**values, "kernels": None}
    chosen: list[str | None] = list(boards)
    if not boards:
        chosen = [None] if is_folder(target) else list(workflow.fitting_boards(target, values))
    if serial is not None:
        targets.flashed(target, "bench", toolchain, opt, serial)
    builds = (
        Build(folder, workflow.board_of(folder), one, opt, jobs)
        for folder in workflow.packed_each(target, chosen, values, work)
        for one in options.toolchains(toolchain)
    )
    if constant_time:
        return _constant_time([timing.measure(build, timeout) for build in builds], as_json=as_json)
    if serial is not None:
        results = [serial_measure(build, timeout, serial) for build in builds]
    else:
        results = [instructions.measure(build, timeout) for build in builds]
    if as_json:
        render.document({"results": results})
    elif serial is not None:
        print(summary(results, "cycles_per_token"))
        print(
            "cycles per token, by the board's own counter, at the positions named; engine, RAM and weights read in bytes"
        )
    else:
        print(summary(results, "instructions_per_token"))
        print(
            "instructions per token under QEMU (not cycles) at the positions named; engine, RAM and weights read in bytes\n"
        )
        print(instructions.by_operator(results))
    return 0


def _constant_time(results: Sequence[dict[str, Any]], *, as_json: bool) -> int:
    if as_json:
        render.document({"results": results})
    else:
        print(timing.table(results))
    return 0 if all(one["holds"] for one in results) else NegativeVerdict.exit_code


def _only_one(modes: dict[str, bool]) -> None:
    given = [name for name, is_given in modes.items() if is_given]
    if len(given) > 1:
        raise UsageError(
            given[1], expected=f"one of {', '.join(modes)}", got=" ".join(given), hint="run bench once for each"
        )


def _one_board(target: Path | None, boards: tuple[str, ...], toolchain: str, values: dict[str, Any]) -> Board:
    """The board of --kernels, which measures no model. Raises UsageError for what belongs to one, and for several boards."""
    settings = options.given_settings({**values, "kernels": None})
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
