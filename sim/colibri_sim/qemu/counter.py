# SPDX-License-Identifier: Apache-2.0
"""Count executed instructions exactly, with a plugin of QEMU's (plugin/count.c). Instructions, never cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colibri.boards import Board
from colibri_sim.qemu.frames import Frame
from colibri_sim.qemu.plugins import run_with_plugin
from colibri_sim.qemu.symbols import address_of, range_of

__all__ = ["Block", "Event", "Profile", "count", "profile"]

MAX_MARKERS = 64

Event = tuple[str, int]
"""What was executed, by the name it was asked for, and the instructions executed before it."""


@dataclass(frozen=True)
class Block:
    """Consecutive instructions without a jump into or out of them, as QEMU translated them.

    n_bytes   may take in two bytes behind the block, where QEMU looked past its end
    executed  how often     next_in_memory  how often the block right behind it came next: a branch at its end that was not taken
    """

    start: int
    n_bytes: int
    n_insns: int
    executed: int
    next_in_memory: int


@dataclass(frozen=True)
class Profile:
    """One run. windows: for each pair of begin and end, the blocks between, whose instructions add up to what was counted."""

    events: list[Event]
    windows: list[list[Block]]
    frames: list[Frame]


def count(
    board: Board,
    elf: Path,
    request: bytes,
    markers: Sequence[str],
    *,
    image: Path | None = None,
    timeout_s: float = 600.0,
) -> list[Event]:
    """Run `elf` on `request`; return for each execution of a marker the instructions executed before it.

    markers  function names; the list is in the order of execution and ends with ("end", all instructions)

    Raises what colibri_sim.qemu.plugins.run_with_plugin raises, and ElfError for a marker that the ELF has not.
    """
    names = _addresses(elf, markers)
    arguments = [f"at={address:x}" for address in names]
    lines, _ = run_with_plugin(board, elf, request, "count", arguments, image=image, timeout_s=timeout_s)
    return parse(lines, names)[0]


def profile(
    board: Board,
    elf: Path,
    request: bytes,
    window: tuple[str, str],
    markers: Sequence[str] = (),
    ranges: Sequence[str] = (),
    *,
    image: Path | None = None,
    timeout_s: float = 600.0,
) -> Profile:
    """Run `elf` on `request`; return what `count` does and the blocks that executed within each window.

    window   the functions whose calls begin and end one
    markers  further functions to note
    ranges   functions that are noted when execution comes back to them after a marker

    Raises as `count`.
    """
    names = _addresses(elf, [*window, *markers])
    bounds = {range_of(elf, name): name for name in ranges}
    begin, end = (address_of(elf, name) for name in window)
    arguments = [
        *(f"at={address:x}" for address in names),
        *(f"in={low:x}-{high:x}" for low, high in bounds),
        f"from={begin:x}",
        f"to={end:x}",
    ]
    lines, frames = run_with_plugin(board, elf, request, "count", arguments, image=image, timeout_s=timeout_s)
    events, windows = parse(lines, names | {low: name for (low, _), name in bounds.items()})
    return Profile(events, windows, frames)


def _addresses(elf: Path, markers: Sequence[str]) -> dict[int, str]:
    if len(markers) > MAX_MARKERS:
        raise ValueError(f"at most {MAX_MARKERS} markers")
    return {address_of(elf, marker): marker for marker in markers}


def parse(lines: Sequence[str], names: Mapping[int, str]) -> tuple[list[Event], list[list[Block]]]:
    """The plugin's lines as events and windows; the lines of a block in one window are added up."""
    events: list[Event] = []
    windows: list[dict[tuple[int, int, int], tuple[int, int]]] = []
    in_window = False
    for line in lines:
        words = line.split()
        if words[0] != "b":
            events.append(("end" if words[0] == "end" else names[int(words[0], 16)], int(words[1])))
            in_window = False
            continue
        if not in_window:
            windows.append({})
            in_window = True
        key = (int(words[1], 16), int(words[2]), int(words[3]))
        executed, following = windows[-1].get(key, (0, 0))
        windows[-1][key] = (executed + int(words[4]), following + int(words[5]))
    return events, [[Block(*key, *counts) for key, counts in sorted(window.items())] for window in windows]
