# SPDX-License-Identifier: Apache-2.0
"""The command: what is measured on which boards, and how it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from colibri.cli import options, render, targets, workflow
from colibri.cli.bench import instructions
from colibri.cli.bench.report import Build, summary
from colibri.cli.bench.serial import measure as serial_measure
from colibri.folder import is_folder
from colibri_sim.serial import SerialPort


@click.command("bench")
@options.TARGET
@click.option(
    "-b", "--board", "boards", metavar="BOARD", multiple=True, help="A board; may be repeated. [all that fit]"
)
@options.settings_options
@options.SERIAL
@options.build_and_run(allow_all=True)
def command(
    target: Path,
    boards: tuple[str, ...],
    serial: SerialPort | None,
    toolchain: str,
    opt: str,
    jobs: int,
    timeout: float | None,
    work: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Count the instructions of each token (of a real board, cycles), and report code, RAM and bytes of weights read."""
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
