# SPDX-License-Identifier: Apache-2.0
"""Builds tests/boards/echo.c for a board, with the flags of colibri build and without an engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from colibri.boards import Board, linker_script
from colibri.build.toolchain import find_toolchain
from colibri.data import data_path

ECHO = Path(__file__).with_name("echo.c")
WEIGHTS = bytes((i * i + 7) % 251 for i in range(10_000))


class LinkError(Exception):
    pass


def build_echo(
    board: Board,
    toolchain: str,
    folder: Path,
    *,
    opt: str = "2",
    simulator: bool = True,
    address: int | None = None,
    extra: Path | None = None,
    stack_bytes: int | None = None,
) -> Path:
    """Compile and link into `folder`; WEIGHTS are the image of a linked board. `extra` is one more C file."""
    found = find_toolchain(board, toolchain)  # type: ignore[arg-type]
    firmware = data_path("firmware")
    (folder / "weights.bin").write_bytes(WEIGHTS)
    bare = board.image == "linked"
    objects = []
    for source in [
        *board.sources,
        *([firmware / "arch" / "weights.S"] if bare else []),
        ECHO,
        *([extra] if extra else []),
    ]:
        target = folder / f"{source.parent.name}_{source.name}.o"
        own = ["-ffreestanding"]
        if source.name == "mem.c":
            own.append("-fno-tree-loop-distribute-patterns" if toolchain == "gcc" else "-fno-builtin")
        command = [
            found.compiler,
            *found.compile_flags(opt),  # type: ignore[arg-type]
            *own,
            *(["-DCOLIBRI_SIMULATOR=1"] if simulator else []),
            f"-I{firmware / 'include'}",
            f"-I{firmware / 'arch'}",
            f'-DCOLIBRI_WEIGHTS_FILE="{folder / "weights.bin"}"',
            "-c",
            str(source),
            "-o",
            str(target),
        ]
        subprocess.run(command, check=True)
        objects.append(str(target))
    elf = folder / "echo.elf"
    command = [found.linker, *found.link_flags, "-nostdlib", "-Wl,--gc-sections", "-Wl,--fatal-warnings"]
    if bare:
        (folder / "board.ld").write_text(linker_script(board, address, "generate", stack_bytes))
        command += ["-T", str(folder / "board.ld")]
    result = subprocess.run([*command, *objects, "-lgcc", "-o", str(elf)], capture_output=True, text=True, check=False)
    if result.returncode:
        raise LinkError(result.stderr)
    return elf
