# SPDX-License-Identifier: Apache-2.0
"""colibri build: compile the engine for a packed folder and link it at the board's addresses."""

from __future__ import annotations

from pathlib import Path

import click

from colibri.build.firmware import BuildOptions, build
from colibri.cli import options, render, workflow
from colibri.folder import read_build, read_folder


@click.command("build")
@options.DIR
@click.option(
    "--app",
    type=click.Choice(["generate", "text", "verify", "bench", "lib"]),
    default="generate",
    show_default=True,
    help="What.",
)
@click.option("--hardware", is_flag=True, help="For the real board: its UART in place of the simulator's console.")
@options.toolchain(allow_all=True)
@options.OPT
@options.JOBS
@options.JSON
def command(folder: Path, app: str, hardware: bool, toolchain: str, opt: str, jobs: int, as_json: bool) -> None:
    """Build an application (or the library) for the packed folder DIR."""
    packed = read_folder(folder)
    board = workflow.board_of(packed)
    builds = []
    for name in options.toolchains(toolchain):
        chosen = BuildOptions(app, name, opt, jobs, simulator=not hardware)  # type: ignore[arg-type]  # click's choices
        target = build(packed, board, chosen)
        record = read_build(target)
        builds.append({"folder": str(target), **record})
        if not as_json:
            print(f"{target}: {_summary(record)}")
    if as_json:
        render.document({"builds": builds})


def _summary(record: dict[str, dict[str, int]]) -> str:
    engine = sum(record.get("engine", {}).values())
    measured = record.get("measured")
    head = f"{record['compiler']} -O{record['opt']}"
    if not measured:
        return f"{head}, engine {engine:,} bytes" if engine else head
    ram = sum(n for name, n in measured.items() if name != "code")
    return f"{head}, engine {engine:,} bytes, code {measured['code']:,} bytes, RAM {ram:,} bytes"
