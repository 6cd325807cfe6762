# SPDX-License-Identifier: Apache-2.0
"""Changes single fields of an ELF32 file: what a wrong linker script, flag or patch tool would have left behind."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

SECTION = {"flags": 8, "addr": 12, "size": 20}
SEGMENT = {"vaddr": 8, "paddr": 12}
WRITE = 1


class Doctor:
    """An ELF file to be changed in place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = bytearray(path.read_bytes())
        self._file = path.open("rb")
        self.elf: Any = ELFFile(self._file)
        assert self.elf.elfclass == 32

    def close(self) -> None:
        self._file.close()
        self.path.write_bytes(self._data)

    def __enter__(self) -> Doctor:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()

    def _index(self, name: str) -> int:
        return next(i for i, s in enumerate(self.elf.iter_sections()) if s.name == name)

    def section(self, name: str, field: str, value: int) -> None:
        at = self.elf["e_shoff"] + self._index(name) * self.elf["e_shentsize"] + SECTION[field]
        struct.pack_into("<I", self._data, at, value)

    def segment_of(self, name: str, field: str, value: int) -> None:
        """Change the segment that holds a section."""
        section = self.elf.get_section(self._index(name))
        at = next(
            i
            for i, s in enumerate(self.elf.iter_segments())
            if s["p_type"] == "PT_LOAD" and s.section_in_segment(section)
        )
        struct.pack_into("<I", self._data, self.elf["e_phoff"] + at * self.elf["e_phentsize"] + SEGMENT[field], value)

    def byte_of(self, name: str, at: int) -> None:
        """Flip the low bit of one byte of a section."""
        self._data[self.elf.get_section(self._index(name))["sh_offset"] + at] ^= 1

    def _symbol(self, name: str) -> tuple[int, Any]:
        table = self.elf.get_section_by_name(".symtab")
        index = next(i for i, s in enumerate(table.iter_symbols()) if s.name == name)
        return table["sh_offset"] + index * table["sh_entsize"], table.get_symbol(index)

    def undefine(self, name: str) -> None:
        at, _ = self._symbol(name)
        struct.pack_into("<H", self._data, at + 14, 0)

    def resize(self, name: str, n_bytes: int) -> None:
        at, _ = self._symbol(name)
        struct.pack_into("<I", self._data, at + 8, n_bytes)

    def rename(self, name: str, other: str) -> None:
        assert len(other) <= len(name)
        _, symbol = self._symbol(name)
        at = self.elf.get_section_by_name(".strtab")["sh_offset"] + symbol["st_name"]
        self._data[at : at + len(other) + 1] = other.encode() + b"\0"
