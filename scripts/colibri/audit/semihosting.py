# SPDX-License-Identifier: Apache-2.0
"""Semihosting traps: instructions by which a program asks a debugger or a simulator, and stops a core that has neither.

The encodings are those of Arm's "Semihosting for AArch32 and AArch64" and of the RISC-V specification "RISC-V Semihosting".
"""

from __future__ import annotations

from colibri.audit.elf import Elf
from colibri.audit.instructions import Found, Instruction, find

_RISCV = ((0x01F01013, 4), (0x00100073, 4), (0x40705013, 4))
"""slli zero, zero, 31; ebreak; srai zero, zero, 7: none compressed. Alone, ebreak is only a breakpoint."""

_NAMES = {"arm-m": "bkpt 0xab", "aarch64": "hlt 0xf000", "riscv": "ebreak between slli and srai"}
_SEQUENCES: dict[str, tuple[tuple[int, int], ...]] = {
    "arm-m": ((0xBEAB, 2),),
    "aarch64": ((0xD45E0000, 4),),
    "riscv": _RISCV,
}


def semihosting_traps(elf: Elf, arch: str) -> tuple[list[Found], int]:
    """Every trap, at the address of its last instruction, and how many instructions were looked at. Raises ElfError."""
    sequence = _SEQUENCES[arch]

    def match(seen: tuple[Instruction, ...]) -> str | None:
        return _NAMES[arch] if tuple((i.word, i.bytes) for i in seen) == sequence else None

    return find(elf, arch, match, n_before=len(sequence) - 1)
