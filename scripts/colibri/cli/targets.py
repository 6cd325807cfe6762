# SPDX-License-Identifier: Apache-2.0
"""Running a built application: which ELF, which image, how long it may take."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri.boards import Board
from colibri.build.firmware import App, BuildOptions, build, output_name
from colibri.build.products import ELF
from colibri.cli import render, workflow
from colibri.errors import UsageError
from colibri.folder import BUILD, IMAGE, Folder, is_folder, read_build, read_folder
from colibri_sim import serial
from colibri_sim.qemu.frames import Frame
from colibri_sim.qemu.runner import run

_INSTRUCTIONS_PER_MAC = 100
"""Generous: portable kernels at -O0 with an integer fma."""
_INSTRUCTIONS_PER_SECOND = 30e6
"""Pessimistic: QEMU on a slow and busy host."""
_START_SECONDS = 30.0
_HARDWARE_SLOWER = 4.0
"""Than the simulator is assumed to be: a core of a few MHz."""
_CLEARED_BYTES_PER_SECOND = 1e6
"""16 cycles a byte at 16 MHz."""


def built(
    folder: Folder, board: Board, app: App, toolchain: str, opt: str, jobs: int = 2, simulator: bool = True
) -> Path:
    """Build an application afresh, so that it is never older than its sources; returns its ELF."""
    options = BuildOptions(app, toolchain, opt, jobs, simulator)  # type: ignore[arg-type]  # click's choices
    render.progress(f"building {app} for {board.name} with {toolchain} at -O{opt}")
    return build(folder, board, options) / "firmware.elf"


def frames(folder: Folder, board: Board, elf: Path, request: bytes, timeout: float) -> Iterator[Frame]:
    """Start the application on a request and yield its answer as it comes."""
    image = folder.path / IMAGE if board.image == "mapped" else None
    return run(board, elf, image, request, timeout)


@dataclass(frozen=True)
class Flashed:
    """A real board at a serial port, with a hardware build of a packed folder on it."""

    port: serial.SerialPort
    folder: Folder
    board: Board
    elf: Path
    record: dict[str, Any]

    def frames(self, request: bytes, timeout: float) -> Iterator[Frame]:
        """Ask the board and yield its answer as it comes."""
        parts = self.folder.manifest["plan"]["ram"]["parts"]
        state = sum(int(parts[name]["bytes"]) for name in ("kv_cache", "activations"))
        pause = state / _CLEARED_BYTES_PER_SECOND
        return serial.run(self.port, request, timeout, elf=self.elf, arch=self.board.arch, pause_s=pause)

    def timeout_for(self, positions: int, bytes_at_position: int, given: float | None) -> float:
        """Seconds for so many positions and what they send; `given` wins."""
        computing = _HARDWARE_SLOWER * timeout_for(self.folder, positions, None)
        return given if given is not None else computing + 2 * self.port.seconds(positions * bytes_at_position)


def flashed(target: Path, app: App, toolchain: str, opt: str, port: serial.SerialPort) -> Flashed:
    """What --serial means on DIR: the hardware build in it, which the user has flashed. Raises UsageError without one."""
    if not is_folder(target) and target.exists():
        raise UsageError(
            "--serial",
            expected="a packed folder, whose hardware build is on the board",
            got=f"{target}, a checkpoint",
            hint="colibri pack CHECKPOINT -b BOARD -o DIR, then colibri build DIR --hardware and colibri flash DIR",
        )
    folder = read_folder(target)
    elf = hardware_build(folder, app, toolchain, opt)
    return Flashed(port, folder, workflow.board_of(folder), elf, read_build(elf.parent))


def hardware_build(folder: Folder, app: App, toolchain: str, opt: str) -> Path:
    """The ELF that `colibri build --hardware` left in the folder. Raises UsageError where there is none for this image."""
    if toolchain == "all":
        raise UsageError(
            "--toolchain", expected="gcc or llvm: one build is on the board", got="all", hint="choose the one flashed"
        )
    options = BuildOptions(app, toolchain, opt, simulator=False)  # type: ignore[arg-type]  # click's choices
    elf = folder.path / output_name(options) / ELF
    command = ["colibri", "build", str(folder.path), "--app", app, "--hardware", "--toolchain", toolchain, "--opt", opt]
    if not (elf.parent / BUILD).is_file():
        raise UsageError(
            str(folder.path),
            expected=f"a hardware build of {app} with {toolchain} at -O{opt}",
            got=f"no {elf.parent.name} in it",
            hint=f"{shlex.join(command)}, then flash it",
        )
    if read_build(elf.parent)["image_sha256"] != folder.manifest["image"]["sha256"]:
        raise UsageError(
            str(elf.parent), expected="a build of this image", got="one of another", hint=shlex.join(command)
        )
    return elf


def timeout_for(folder: Folder, positions: int, given: float | None, n_source: int = 0) -> float:
    """Seconds a run of so many positions may take, and of so many tokens of sources; `given` wins."""
    plan = folder.manifest["plan"]
    macs = int(plan["macs_per_token"]) * positions + int(plan.get("source_macs_per_token", 0)) * n_source
    return given if given is not None else _START_SECONDS + macs * _INSTRUCTIONS_PER_MAC / _INSTRUCTIONS_PER_SECOND


def vectors_positions(folder: Folder) -> int:
    """Positions of the folder's own prompts."""
    return sum(len(prompt["ids"]) for prompt in folder.vectors()["prompts"])
