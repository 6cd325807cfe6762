# SPDX-License-Identifier: Apache-2.0
"""Instructions that mask interrupts, found in an ELF's code by their encodings.

Nothing is disassembled: an instruction's length and these few encodings are all that is needed. Mapping symbols ($t, $x, $d) tell
code from the data between it; where there are none (RISC-V), a section of code is all code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from colibri.audit.elf import Elf, Section

MAY_MASK = ("colibri_reset",)
"""The functions that may: reset, before anything else runs."""

_ARM_MASKS = {16: "primask", 17: "basepri", 18: "basepri_max", 19: "faultmask"}
_RISCV_MASKS = {0x100: "sstatus", 0x104: "sie", 0x300: "mstatus", 0x304: "mie"}


@dataclass(frozen=True)
class Found:
    """An instruction that masks interrupts, or may."""

    text: str
    address: int
    function: str


def masking_instructions(elf: Elf, arch: str) -> tuple[list[Found], int]:
    """Every such instruction, and how many instructions were looked at. arch: arm-m, riscv or aarch64. Raises ElfError."""
    found: list[Found] = []
    count = 0
    for section in elf.sections:
        if not section.executable or section.nobits or not section.bytes or section.load_address is None:
            continue
        code = elf.data(section.load_address, section.bytes)
        for begin, end in _code_ranges(elf, section):
            for at, halves in _instructions(code, begin, end, arch):
                count += 1
                text = _MASKING[arch](halves)
                if text is not None:
                    address = section.address + at
                    found.append(Found(text, address, _function(elf, section.name, address)))
    return found, count


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


def _instructions(code: bytes, begin: int, end: int, arch: str) -> Iterator[tuple[int, int]]:
    """(offset, encoding) of each: Thumb's second half is the lower one."""
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
            yield at, first
            at += 2
            continue
        (second,) = struct.unpack_from("<H", code, at + 2)
        yield at, first << 16 | second if arch == "arm-m" else second << 16 | first
        at += 4


def _thumb(word: int) -> str | None:
    if word & 0xFFFFFFF8 == 0xB670:
        return "cpsid"
    if word & 0xFFF0F300 == 0xF3808000 and word & 0x7F in _ARM_MASKS:  # also the other world's: SYSm + 128
        return f"msr {_ARM_MASKS[word & 0x7F]}"
    return None


def _aarch64(word: int) -> str | None:
    if word & 0xFFFFF0FF == 0xD50340DF:
        return "msr daifset"
    if word & 0xFFFFFFE0 == 0xD51B4220:
        return "msr daif"
    return None


def _riscv(word: int) -> str | None:
    register = _RISCV_MASKS.get(word >> 20)
    operation, source = word >> 12 & 7, word >> 15 & 31
    if word & 0x7F != 0x73 or register is None:
        return None
    if operation & 3 == 1:
        return f"csrw {register}"
    return f"csrc {register}" if operation & 3 == 3 and source else None


_MASKING = {"arm-m": _thumb, "aarch64": _aarch64, "riscv": _riscv}


def _function(elf: Elf, section: str, address: int) -> str:
    """The function that holds an address, or 'no function'."""
    for symbol in elf.symbols:
        start = symbol.address & ~1 if symbol.kind == "FUNC" else symbol.address
        if symbol.kind == "FUNC" and symbol.section == section and start <= address < start + symbol.bytes:
            return symbol.name
    return "no function"
