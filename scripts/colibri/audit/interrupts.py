# SPDX-License-Identifier: Apache-2.0
"""Instructions that mask interrupts."""

from __future__ import annotations

from colibri.audit.elf import Elf
from colibri.audit.instructions import Found, Instruction, find

MAY_MASK = ("colibri_reset",)
"""The functions that may: reset, before anything else runs."""

_ARM_MASKS = {16: "primask", 17: "basepri", 18: "basepri_max", 19: "faultmask"}
_RISCV_MASKS = {0x100: "sstatus", 0x104: "sie", 0x300: "mstatus", 0x304: "mie"}


def masking_instructions(elf: Elf, arch: str) -> tuple[list[Found], int]:
    """Every instruction that masks interrupts, or may, and how many were looked at. Raises ElfError."""
    masking = _MASKING[arch]

    def match(seen: tuple[Instruction, ...]) -> str | None:
        return masking(seen[-1].word)

    return find(elf, arch, match)


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
