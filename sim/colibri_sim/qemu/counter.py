# SPDX-License-Identifier: Apache-2.0
"""Count executed instructions exactly, with a plugin of QEMU's. Instructions, never cycles.

The plugin is C, in plugin/count.c, and is compiled by the host's compiler for the QEMU that is found.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from colibri.boards import Board
from colibri.errors import NoVerdict, ToolError, UsageError
from colibri_sim.qemu.machine import find_tool, linux_command, simulator_command
from colibri_sim.qemu.runner import stream, work_folder
from colibri_sim.qemu.symbols import address_of

__all__ = ["count"]

PLUGIN_SOURCE = Path(__file__).resolve().parent / "plugin" / "count.c"
# Plugin interface version 1: in QEMU from 4.2, with what is used here from 5.2; version 2 came with 9.0.
FIRST_QEMU, FIRST_UNKNOWN_QEMU = (5, 2), (9, 0)
MAX_MARKERS = 64


def count(
    board: Board,
    elf: Path,
    request: bytes,
    markers: Sequence[str],
    *,
    image: Path | None = None,
    timeout_s: float = 600.0,
) -> list[tuple[str, int]]:
    """Run `elf` on `request`; return for each execution of a marker the instructions executed before it.

    markers  function names; the list is in the order of execution and ends with ("end", all instructions)
    """
    if len(markers) > MAX_MARKERS:
        raise ValueError(f"at most {MAX_MARKERS} markers")
    if board.qemu is None:
        raise UsageError(
            f"board {board.name}",
            expected="a board with a simulator",
            got=f"no [qemu] in {board.path.name}",
            hint="instructions are counted by QEMU only",
        )
    binary = find_tool(board.qemu.binary, board.qemu.package)
    check_version(binary)
    names = {address_of(elf, marker): marker for marker in markers}
    with work_folder() as folder:
        (folder / "request.bin").write_bytes(request)
        plugin = build_plugin(folder)
        argument = ",".join([str(plugin), f"out={folder / 'counts.txt'}", *(f"at={address:x}" for address in names)])
        if board.image == "mapped":
            command = linux_command(board, elf, image, plugin=argument)
        else:
            command = simulator_command(board, elf, plugin=argument)
        for _ in stream(command, folder, timeout_s, elf=elf, arch=board.arch):
            pass
        return _parse(folder / "counts.txt", names, binary)


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


def build_plugin(folder: Path) -> Path:
    """Compile the plugin into `folder`; return its path."""
    compiler = next((path for name in ("cc", "gcc", "clang", "clang-19") if (path := shutil.which(name))), None)
    if compiler is None:
        raise ToolError(
            "cc",
            expected="a C compiler for this machine, to build the counting plugin",
            got="none in PATH",
            hint="apt-get install --no-install-recommends gcc libc6-dev",
        )
    plugin = folder / "count.so"
    command = [compiler, "-std=c11", "-O2", "-fPIC", "-shared", "-o", str(plugin), str(PLUGIN_SOURCE)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ToolError(
            compiler,
            expected="a compiler that builds the counting plugin",
            got=(result.stderr.strip().splitlines() or ["an error"])[0],
            hint="apt-get install --no-install-recommends gcc libc6-dev",
        )
    return plugin


def _parse(path: Path, names: dict[int, str], binary: str) -> list[tuple[str, int]]:
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    if not lines or not lines[-1].startswith("end "):
        raise NoVerdict(
            binary,
            expected="a complete list of counts from the plugin",
            got="none" if not lines else "one that was cut short",
            hint="does this QEMU take plugins? try: " + binary + " -plugin help",
        )
    counts = []
    for line in lines:
        marker, number = line.split()
        counts.append(("end" if marker == "end" else names[int(marker, 16)], int(number)))
    return counts
