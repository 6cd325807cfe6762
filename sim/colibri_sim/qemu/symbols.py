# SPDX-License-Identifier: Apache-2.0
"""Function names and addresses from an ELF's symbol table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from colibri.errors import ElfError

__all__ = ["address_of", "functions", "range_of", "symbol_at"]


def symbol_at(elf: Path, address: int) -> str:
    """Describe an address as FUNCTION+OFFSET (ADDRESS), or as the address alone."""
    try:
        for name, start, n_bytes in functions(elf):
            if start <= address < start + max(n_bytes, 1):
                return f"{name}+{address - start:#x} ({address:#x})"
    except ElfError:
        pass  # this is for a message about something else
    return f"{address:#x}"


def address_of(elf: Path, name: str) -> int:
    """Return where a function starts, or say that the ELF has none of that name."""
    return range_of(elf, name)[0]


def range_of(elf: Path, name: str) -> tuple[int, int]:
    """Return a function's first address and the one past it, or say that the ELF has none of that name.

    A compiler may have made a variant of its own, NAME.constprop.0, and nothing else: that is the function then.
    """
    found = {symbol: (start, start + n_bytes) for symbol, start, n_bytes in functions(elf)}
    variants = [symbol for symbol in found if symbol.startswith(f"{name}.") and not symbol.endswith(".cold")]
    for symbol in (name, *variants):
        if symbol in found:
            return found[symbol]
    raise ElfError(
        str(elf), expected=f"a function {name}", got="none of that name", hint="build the application that has it"
    )


def functions(elf: Path) -> Iterator[tuple[str, int, int]]:
    """Name, address and bytes of every function; the Thumb bit is cleared."""
    try:
        with elf.open("rb") as file:
            parsed = ELFFile(file)
            thumb = 1 if parsed["e_machine"] == "EM_ARM" else 0
            table = parsed.get_section_by_name(".symtab")
            if not isinstance(table, SymbolTableSection):
                return
            for symbol in table.iter_symbols():
                if symbol["st_info"]["type"] == "STT_FUNC":
                    yield symbol.name, symbol["st_value"] & ~thumb, symbol["st_size"]
    except (ELFError, OSError) as error:
        raise ElfError(str(elf), expected="an ELF file", got=str(error), hint="build it again") from error
