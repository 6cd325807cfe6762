# SPDX-License-Identifier: Apache-2.0
"""The command: what is measured on which boards, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from colibri.cli import options, render, targets, workflow
from colibri.cli.bench import constant_time as timing
from colibri.cli.bench import instructions
from colibri.cli.bench.report import Build, summary
from colibri.cli.bench.serial import measure as serial_measure
from colibri.errors import NegativeVerdict, UsageError
from colibri.folder import is_folder
from colibri_sim.serial import SerialPort


@click.command("bench")
@options.TARGET
@click.option(
    "-b", "--board", "boards", metavar="BOARD", multiple=True, help="A board; may be repeated. [all that fit]"
)
@options.settings_options
@options.SERIAL
@click.option(
    "--constant-time",
    is_flag=True,
    help="Instead: does what a step executes and accesses depend on the position alone?",
)
@options.build_and_run(allow_all=True)
def command(
    target: Path,
    boards: tuple[str, ...],
    serial: SerialPort | None,
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
    if serial is not None and constant_time:
        raise UsageError(
            "--constant-time",
            expected="the simulator, which sees every instruction",
            got="--serial",
            hint="leave one of the two out",
        )
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
