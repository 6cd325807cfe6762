# SPDX-License-Identifier: Apache-2.0
"""The instructions of an ELF by address, from LLVM's disassembler, which knows every instruction that its models know."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from colibri.errors import NoVerdict
from colibri_sim.qemu.counter import Block
from colibri_sim.qemu.machine import find_tool

PACKAGE = "llvm-19"
_LINE = re.compile(r"^[ \t]*([0-9a-f]+):[ \t]+([a-z][\w.]*)[ \t]*(.*)$", re.MULTILINE)
_NOTES = re.compile(r"\s*(<[^>]*>)?\s*((@|//|;) .*)?$")
_TARGET = re.compile(r"\b0x[0-9a-f]+(?=( <[^>]*>)?( *(@|//|;).*)?$)")


@dataclass(frozen=True)
class Insn:
    """One instruction: its name in lower case, without a width suffix, and its operands; a branch's target is `.`."""

    name: str
    operands: str

    @property
    def text(self) -> str:
        """As an assembler takes it."""
        return f"{self.name} {self.operands}".strip()


@dataclass(frozen=True)
class Code:
    """Every instruction by its address."""

    elf: Path
    insns: Mapping[int, tuple[Insn, int]]

    def of(self, block: Block) -> list[Insn]:
        """The instructions of a block. NoVerdict where they are not as many as were executed."""
        found: list[Insn] = []
        address = block.start
        while len(found) < block.n_insns and address in self.insns:
            insn, address = self.insns[address]
            found.append(insn)
        if len(found) != block.n_insns:
            raise NoVerdict(
                f"{self.elf}: {block.start:#x}",
                expected=f"{block.n_insns} instructions, as were executed",
                got=f"{len(found)} in the disassembly",
                hint="this is a bug of colibri, please report it",
            )
        return found


def disassemble(elf: Path, cpu: str) -> Code:
    """Disassemble the code of an ELF. Raises ToolError where LLVM's disassembler is missing."""
    tool = find_tool("llvm-objdump-19", PACKAGE)
    command = [
        tool,
        "-d",
        "--no-show-raw-insn",
        f"--mcpu={cpu.lower().removesuffix('f').replace('+', 'plus')}",
        str(elf),
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = [(int(m[1], 16), m[2], m[3]) for m in _LINE.finditer(text)]
    insns = {}
    for (address, name, rest), following in zip(lines, [*(at for at, _, _ in lines[1:]), None], strict=True):
        operands = _NOTES.sub("", _TARGET.sub(".", rest) if _jumps(name) else rest)
        insns[address] = (Insn(name, operands), address + 4 if following is None else following)
    return Code(elf, insns)


def _jumps(name: str) -> bool:
    """Whether the last operand is an address."""
    return bool(re.match(r"(bl?x?(\.?[a-z]{2})?(\.[nw])?|cbn?z|tbn?z|le|wls|wlstp\.\d+|letp)$", name))
