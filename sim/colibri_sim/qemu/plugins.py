# SPDX-License-Identifier: Apache-2.0
"""Run a firmware ELF under QEMU with one of the plugins in plugin/: C, compiled by the host's compiler when it is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from colibri.boards import Board
from colibri.errors import NoVerdict, ToolError, UsageError
from colibri_sim.qemu.frames import Frame
from colibri_sim.qemu.machine import find_tool, linux_command, simulator_command
from colibri_sim.qemu.runner import stream, work_folder

__all__ = ["build_plugin", "check_version", "run_with_plugin"]

SOURCES = Path(__file__).resolve().parent / "plugin"
# Plugin interface version 1: in QEMU from 4.2, with what is used here from 5.2; version 2 came with 9.0.
FIRST_QEMU, FIRST_UNKNOWN_QEMU = (5, 2), (9, 0)


def run_with_plugin(
    board: Board,
    elf: Path,
    request: bytes,
    plugin: str,
    arguments: Sequence[str],
    *,
    files: Mapping[str, str] = MappingProxyType({}),
    image: Path | None = None,
    timeout_s: float = 600.0,
) -> tuple[list[str], list[Frame]]:
    """Run `elf` on `request`; return the lines that the plugin wrote, and the response.

    plugin     name of a source in plugin/, which writes text to out=FILE and ends with a line "end ..."
    arguments  of the plugin, without out=
    files      name and text of what the arguments name

    Raises UsageError for a board without a simulator, ToolError without a host compiler, NoVerdict for a plugin interface that is
    not known and for an output that was cut short; and what colibri_sim.qemu.runner.run raises.
    """
    if board.qemu is None:
        raise UsageError(
            f"board {board.name}",
            expected="a board with a simulator",
            got=f"no [qemu] in {board.path.name}",
            hint="instructions are counted by QEMU only",
        )
    binary = find_tool(board.qemu.binary, board.qemu.package)
    check_version(binary)
    with work_folder() as folder:
        (folder / "request.bin").write_bytes(request)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="ascii")
        out = folder / "plugin.txt"
        argument = ",".join([str(build_plugin(plugin, folder)), f"out={out}", *arguments])
        if board.image == "mapped":
            command = linux_command(board, elf, image, plugin=argument)
        else:
            command = simulator_command(board, elf, plugin=argument)
        frames = list(stream(command, folder, timeout_s, elf=elf, arch=board.arch))
        return complete_lines(out, binary), frames


def check_version(binary: str) -> None:
    """Raise NoVerdict where the plugin interface of this QEMU is not the one that the plugin was written for."""
    text = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"version (\d+)\.(\d+)", text)
    version = (int(match[1]), int(match[2])) if match else None
    if version is None or not FIRST_QEMU <= version < FIRST_UNKNOWN_QEMU:
        raise NoVerdict(
            binary,
            expected="QEMU 5.2 to 8.2, whose plugin interface has version 1",
            got="an unknown version" if version is None else f"QEMU {version[0]}.{version[1]}",
            hint="count with Debian 12's QEMU 7.2; everything else works with any version",
        )


def build_plugin(name: str, folder: Path) -> Path:
    """Compile plugin/NAME.c into `folder`; return its path."""
    compiler = next((path for one in ("cc", "gcc", "clang", "clang-19") if (path := shutil.which(one))), None)
    if compiler is None:
        raise ToolError(
            "cc",
            expected="a C compiler for this machine, to build the counting plugin",
            got="none in PATH",
            hint="apt-get install --no-install-recommends gcc libc6-dev",
        )
    plugin = folder / f"{name}.so"
    command = [compiler, "-std=c11", "-O2", "-fPIC", "-shared", "-o", str(plugin), str(SOURCES / f"{name}.c")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ToolError(
            compiler,
            expected="a compiler that builds the counting plugin",
            got=(result.stderr.strip().splitlines() or ["an error"])[0],
            hint="apt-get install --no-install-recommends gcc libc6-dev",
        )
    return plugin


def complete_lines(path: Path, binary: str) -> list[str]:
    """The lines of a plugin's output. NoVerdict where its last line, "end ...", is missing."""
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    if not lines or not lines[-1].startswith("end"):
        raise NoVerdict(
            binary,
            expected="a complete list from the plugin",
            got="none" if not lines else "one that was cut short",
            hint="does this QEMU take plugins? try: " + binary + " -plugin help",
        )
    return lines
