# SPDX-License-Identifier: Apache-2.0
"""Facts of an ELF as GNU binutils state them, not pyelftools."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

PREFIX = "arm-none-eabi-"


def said(tool: str, *arguments: str | Path) -> str:
    command = [PREFIX + tool, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class Header:
    """A section as `objdump -h` shows it."""

    name: str
    bytes: int
    vma: int
    lma: int


def sections(elf: Path) -> dict[str, Header]:
    """Allocated sections."""
    pattern = re.compile(r"^ *\d+ (\S+) +(\w{8}) +(\w{8}) +(\w{8}) .*\n +(.*ALLOC.*)$", re.MULTILINE)
    found = (
        Header(m[1], int(m[2], 16), int(m[3], 16), int(m[4], 16)) for m in pattern.finditer(said("objdump", "-h", elf))
    )
    return {header.name: header for header in found}


def sizes(elf: Path) -> dict[str, int]:
    """`size -A`."""
    lines = (line.split() for line in said("size", "-A", elf).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 3 and words[1].isdigit()}


def symbols(elf: Path) -> dict[str, tuple[int, int]]:
    """`nm -S`: name -> (address, bytes) of those with a size."""
    lines = (line.split() for line in said("nm", "-S", elf).splitlines())
    return {words[3]: (int(words[0], 16), int(words[1], 16)) for words in lines if len(words) == 4}


def names(file: Path) -> list[tuple[str, str]]:
    """`nm`: (kind, name) of every symbol, archives member by member."""
    lines = (line.split() for line in said("nm", file).splitlines())
    return [(words[-2], words[-1]) for words in lines if len(words) >= 2]
