# SPDX-License-Identifier: Apache-2.0
"""Facts of an ELF file: sections, segments and symbols, by pyelftools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError as PyElfError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from colibri.errors import ElfError


@dataclass(frozen=True)
class Section:
    """An allocated section. address is where it is used (VMA), load_address where it is programmed (LMA)."""

    name: str
    address: int
    load_address: int | None
    bytes: int
    writable: bool
    executable: bool
    nobits: bool


@dataclass(frozen=True)
class Symbol:
    """A symbol: kind is FUNC, OBJECT, NOTYPE ...; section is its section's name, None when undefined."""

    name: str
    address: int
    bytes: int
    kind: str
    binding: str
    section: str | None


@dataclass(frozen=True)
class Elf:
    """An ELF, read once. fpu: whether it was compiled for a core that has one."""

    path: Path
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    segments: tuple[tuple[int, bytes], ...]
    word_bits: int
    fpu: bool

    @staticmethod
    def read(path: Path) -> Elf:
        """Read a file. Raises ElfError for what is no ELF."""
        try:
            with path.open("rb") as file:
                elf = ELFFile(file)
                loads = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
                sections = tuple(
                    _section(section, loads)
                    for section in elf.iter_sections()
                    if section["sh_flags"] & SH_FLAGS.SHF_ALLOC
                )
                names = [section.name for section in elf.iter_sections()]
                symbols = tuple(
                    _symbol(symbol, names)
                    for table in elf.iter_sections()
                    if isinstance(table, SymbolTableSection) and table.name == ".symtab"
                    for symbol in table.iter_symbols()
                    if symbol.name
                )
                segments = tuple((s["p_paddr"], s.data()) for s in loads if s["p_filesz"])
                return Elf(path, sections, symbols, segments, elf.elfclass, _has_fpu(elf))
        except (OSError, PyElfError, ValueError, KeyError) as error:
            raise ElfError(
                str(path),
                expected="an ELF file",
                got=str(error) or "something else",
                hint="build it: colibri build DIR",
            ) from error

    def section(self, name: str) -> Section | None:
        """The allocated section of that name."""
        return next((s for s in self.sections if s.name == name), None)

    def symbol(self, name: str) -> Symbol | None:
        """The defined symbol of that name."""
        return next((s for s in self.symbols if s.name == name and s.section is not None), None)

    def symbol_bytes(self, name: str) -> int:
        """Size of an object; 0 where there is none."""
        symbol = self.symbol(name)
        return symbol.bytes if symbol else 0

    def data(self, address: int, n_bytes: int) -> bytes:
        """Bytes as programmed at a load address. Raises ElfError where the file has none there."""
        for start, content in self.segments:
            if start <= address and address + n_bytes <= start + len(content):
                return content[address - start : address - start + n_bytes]
        raise ElfError(
            str(self.path), expected=f"{n_bytes} bytes at {address:#x}", got="none", hint="build it: colibri build DIR"
        )


def _has_fpu(elf) -> bool:  # type: ignore[no-untyped-def]  # pyelftools has no types
    if elf["e_machine"] == "EM_RISCV":
        return bool(elf["e_flags"] & 6)  # EF_RISCV_FLOAT_ABI
    if elf["e_machine"] == "EM_ARM":
        section = elf.get_section_by_name(".ARM.attributes")
        attributes = (
            [
                a
                for sub in section.iter_subsections()
                for ssub in sub.iter_subsubsections()
                for a in ssub.iter_attributes()
            ]
            if section
            else []
        )
        return any(a.tag == "TAG_FP_ARCH" and a.value for a in attributes)
    return True


def _section(section, loads) -> Section:  # type: ignore[no-untyped-def]  # pyelftools has no types
    address, flags, nobits = section["sh_addr"], section["sh_flags"], section["sh_type"] == "SHT_NOBITS"
    inside = [s for s in loads if s["p_vaddr"] <= address < s["p_vaddr"] + max(s["p_memsz"], 1)]
    load = inside[0]["p_paddr"] + address - inside[0]["p_vaddr"] if inside else None
    return Section(
        section.name,
        address,
        load,
        section["sh_size"],
        bool(flags & SH_FLAGS.SHF_WRITE),
        bool(flags & SH_FLAGS.SHF_EXECINSTR),
        nobits,
    )


def _symbol(symbol, names) -> Symbol:  # type: ignore[no-untyped-def]  # pyelftools has no types
    index = symbol["st_shndx"]
    section = None if index == "SHN_UNDEF" else names[index] if isinstance(index, int) else str(index)
    info = symbol["st_info"]
    return Symbol(
        symbol.name,
        symbol["st_value"],
        symbol["st_size"],
        info["type"].removeprefix("STT_"),
        info["bind"].removeprefix("STB_"),
        section,
    )
