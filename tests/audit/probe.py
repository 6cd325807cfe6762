# SPDX-License-Identifier: Apache-2.0
"""A few instructions as an ELF of a board."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from colibri.audit.elf import Elf
from colibri.boards import load_board
from colibri.build.toolchain import find_toolchain

Compiler = Literal["gcc", "llvm"]


def assembled(folder: Path, board: str, toolchain: Compiler, lines: Sequence[str]) -> Elf:
    """The lines as one function, `probe`."""
    found = find_toolchain(load_board(board), toolchain)
    body = "\n".join(f"    {line}" for line in lines)
    text = f'.section .text, "ax", %progbits\n.global probe\n.type probe, %function\nprobe:\n{body}\n'
    text += ".balign 4\n.size probe, . - probe\n"
    head = ".syntax unified\n.thumb\n" if load_board(board).arch == "arm-m" else ""
    (folder / "probe.S").write_text(head + text)
    compiling = [found.compiler, *found.compile_flags("2"), "-c", "probe.S", "-o", "probe.o"]
    # orphan sections are an error to our linker scripts only
    flags = [flag for flag in found.link_flags if "orphan" not in flag]
    linking = [found.linker, *flags, "-nostdlib", "-Wl,-e,probe,-Ttext=0x10000", "probe.o", "-o", "probe.elf"]
    for command in (compiling, linking):
        subprocess.run(command, cwd=folder, check=True)
    return Elf.read(folder / "probe.elf")
