# SPDX-License-Identifier: Apache-2.0
"""The instructions of an ELF's code, one after the other.

Nothing is disassembled: an instruction's length tells where the next one is, and what is looked for is told by its encoding.
Mapping symbols ($t, $x, $d) tell code from the data between it; where there are none (RISC-V), a section of code is all code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from colibri.audit.elf import Elf, Section


@dataclass(frozen=True)
class Instruction:
    """Its address, its bytes as a number (of Thumb's two halves the second is the lower one), and how many bytes it has."""

    address: int
    word: int
    bytes: int


@dataclass(frozen=True)
class Found:
    """An instruction that was looked for, by its mnemonic, and the function that holds it."""

    text: str
    address: int
    function: str

    def __str__(self) -> str:
        return f"{self.text} at {self.address:#x} in {self.function}"


Match = Callable[[tuple[Instruction, ...]], str | None]
"""What the last of some consecutive instructions is, with those before it, where it is one that is looked for."""


def find(elf: Elf, arch: str, match: Match, n_before: int = 0) -> tuple[list[Found], int]:
    """Every instruction that matches, and how many were looked at. Raises ElfError.

    arch      arm-m, riscv or aarch64
    n_before  how many instructions before it `match` gets too, fewer behind data or at the start of a section
    """
    found: list[Found] = []
    count = 0
    seen: tuple[Instruction, ...] = ()
    for section, stretch in _stretches(elf, arch):
        for instruction in stretch:
            count += 1
            follows = seen and seen[-1].address + seen[-1].bytes == instruction.address
            seen = (*(seen if follows else ()), instruction)[-1 - n_before :]
            text = match(seen)
            if text is not None:
                found.append(Found(text, instruction.address, _function(elf, section, instruction.address)))
    return found, count


def _stretches(elf: Elf, arch: str) -> Iterator[tuple[str, Iterator[Instruction]]]:
    """The name of a section, and a stretch of its code: one for each mapping symbol."""
    for section in elf.sections:
        if not section.executable or section.nobits or not section.bytes or section.load_address is None:
            continue
        code = elf.data(section.load_address, section.bytes)
        for begin, end in _code_ranges(elf, section):
            yield section.name, _instructions(code, begin, end, arch, section.address)


def _code_ranges(elf: Elf, section: Section) -> Iterator[tuple[int, int]]:
    """Offsets of code in a section; a range begins anew at each mapping symbol."""
    marks = {
        s.address - section.address: s.name[1] for s in elf.symbols if s.section == section.name and _is_mark(s.name)
    }
    inside = {at: kind for at, kind in marks.items() if 0 <= at < section.bytes}
    places = sorted({0: "x", **inside}.items())
    for index, (begin, kind) in enumerate(places):
        end = places[index + 1][0] if index + 1 < len(places) else section.bytes
        if kind != "d":
            yield begin, end


def _is_mark(name: str) -> bool:
    """$t, $a, $x, $d, also with a suffix such as $d.1 or $xrv64i2p1."""
    return len(name) >= 2 and name[0] == "$" and name[1] in "taxd"


def _instructions(code: bytes, begin: int, end: int, arch: str, address: int) -> Iterator[Instruction]:
    """Those from offset begin to end of a section's code. address: the section's."""
    at = begin
    while at + 2 <= end:
        (first,) = struct.unpack_from("<H", code, at)
        if arch == "aarch64":
            long = True
        elif arch == "arm-m":
            long = first >= 0xE800
        else:
            long = first & 3 == 3
        if not long or at + 4 > end:
            yield Instruction(address + at, first, 2)
            at += 2
            continue
        (second,) = struct.unpack_from("<H", code, at + 2)
        yield Instruction(address + at, first << 16 | second if arch == "arm-m" else second << 16 | first, 4)
        at += 4


def _function(elf: Elf, section: str, address: int) -> str:
    """The function that holds an address, or 'no function'."""
    for symbol in elf.symbols:
        start = symbol.address & ~1 if symbol.kind == "FUNC" else symbol.address
        if symbol.kind == "FUNC" and symbol.section == section and start <= address < start + symbol.bytes:
            return symbol.name
    return "no function"
