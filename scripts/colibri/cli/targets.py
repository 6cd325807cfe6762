# SPDX-License-Identifier: Apache-2.0
"""Running a built application: which ELF, which image, how long it may take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from colibri.boards import Board
from colibri.build.firmware import App, BuildOptions, build
from colibri.cli import render
from colibri.folder import IMAGE, Folder
from colibri_sim.qemu.frames import Frame
from colibri_sim.qemu.runner import run

_INSTRUCTIONS_PER_MAC = 100
"""Generous: portable kernels at -O0 with an integer fma."""
_INSTRUCTIONS_PER_SECOND = 30e6
"""Pessimistic: QEMU on a slow and busy host."""
_START_SECONDS = 30.0


def built(folder: Folder, board: Board, app: App, toolchain: str, opt: str, jobs: int = 2) -> Path:
    """Build an application afresh, so that it is never older than its sources; returns its ELF."""
    options = BuildOptions(app=app, toolchain=toolchain, opt=opt, jobs=jobs)  # type: ignore[arg-type]  # click's choices
    render.progress(f"building {app} for {board.name} with {toolchain} at -O{opt}")
    return build(folder, board, options) / "firmware.elf"


def frames(folder: Folder, board: Board, elf: Path, request: bytes, timeout: float) -> Iterator[Frame]:
    """Start the application on a request and yield its answer as it comes."""
    image = folder.path / IMAGE if board.image == "mapped" else None
    return run(board, elf, image, request, timeout)


def timeout_for(folder: Folder, positions: int, given: float | None) -> float:
    """Seconds a run of so many positions may take; `given` wins."""
    macs = int(folder.manifest["plan"]["macs_per_token"]) * positions
    return given if given is not None else _START_SECONDS + macs * _INSTRUCTIONS_PER_MAC / _INSTRUCTIONS_PER_SECOND


def vectors_positions(folder: Folder) -> int:
    """Positions of the folder's own prompts."""
    return sum(len(prompt["ids"]) for prompt in folder.vectors()["prompts"])
