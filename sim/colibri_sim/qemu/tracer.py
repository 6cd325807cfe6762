# SPDX-License-Identifier: Apache-2.0
"""What each window of a run executed and which addresses it touched, as hashes, with a plugin of QEMU's (plugin/trace.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from colibri.boards import Board
from colibri_sim.qemu.frames import Frame
from colibri_sim.qemu.plugins import run_with_plugin
from colibri_sim.qemu.symbols import address_of

__all__ = ["Range", "Window", "parse", "trace"]


@dataclass(frozen=True)
class Range:
    """Addresses from `low` to `high` - 1 that are not hashed as they are; they do not overlap.

    skip  code that is left out, with its accesses
    same  ranges of one tag are one: an address is its offset in its range
    once  in a window's first stage an address is the range
    """

    kind: Literal["skip", "same", "once"]
    low: int
    high: int
    tag: int = 0


@dataclass(frozen=True)
class Window:
    """Hashes of all program counters, all accesses, and all accesses with absolute addresses; stages: of code and accesses before
    each stage began."""

    stages: tuple[tuple[str, str], ...]
    code: str
    data: str
    raw: str
    instructions: int
    accesses: int


def trace(
    board: Board,
    elf: Path,
    request: bytes,
    window: tuple[str, str],
    stage: str,
    ranges: Sequence[Range],
    *,
    timeout_s: float = 600.0,
) -> tuple[list[Window], list[Frame]]:
    """Run `elf` on `request`; return each window, from a call of the first function named to one of the second, and the response.

    stage  a function whose calls begin the stages

    Raises what colibri_sim.qemu.plugins.run_with_plugin raises, and ElfError for a function that the ELF has not.
    """
    begin, end = (address_of(elf, name) for name in window)
    arguments = ["ranges=ranges.txt", f"begin={begin:x}", f"end={end:x}", f"stage={address_of(elf, stage):x}"]
    text = "".join(
        f"{one.kind} {one.low:x} {one.high:x}{'' if one.kind == 'skip' else f' {one.tag:x}'}\n" for one in ranges
    )
    lines, frames = run_with_plugin(
        board, elf, request, "trace", arguments, files={"ranges.txt": text}, timeout_s=timeout_s
    )
    return parse(lines), frames


def parse(lines: Sequence[str]) -> list[Window]:
    """The plugin's lines as windows."""
    windows = []
    stages: list[tuple[str, str]] = []
    for line in lines:
        kind, *words = line.split()
        if kind == "s":
            stages.append((words[0], words[1]))
        elif kind == "w":
            windows.append(Window(tuple(stages), words[0], words[1], words[2], int(words[3]), int(words[4])))
            stages = []
    return windows
