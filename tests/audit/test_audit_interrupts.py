# SPDX-License-Identifier: Apache-2.0
"""Instructions that mask interrupts are found in an ELF, whichever they are, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from colibri.audit.claims import Subject, no_masked_interrupt
from colibri.audit.interrupts import masking_instructions
from colibri.boards import load_board
from colibri.cli.workflow import board_of
from image.packs import Packs
from verify.mutants import patched_build

from .probe import Compiler, assembled

# An instruction: what the audit calls it, None where it masks nothing.
LINES: dict[str, dict[str, str | None]] = {
    "mps3-an547": {
        "cpsid i": "cpsid",
        "cpsid f": "cpsid",
        "cpsid if": "cpsid",
        "cpsie i": None,
        "msr primask, r3": "msr primask",
        "msr basepri, r12": "msr basepri",
        "msr basepri_max, r0": "msr basepri_max",
        "msr faultmask, r1": "msr faultmask",
        "mrs r0, primask": None,
        "msr msplim, r0": None,
        "msr control, r0": None,
        "movw r0, #0xb672": None,
    },
    "virt-riscv64": {
        "csrw mstatus, t0": "csrw mstatus",
        "csrci mstatus, 8": "csrc mstatus",
        "csrc mstatus, a0": "csrc mstatus",
        "csrrc a1, mie, a0": "csrc mie",
        "csrwi mie, 0": "csrw mie",
        "csrc sstatus, a0": "csrc sstatus",
        "csrs mstatus, t0": None,
        "csrsi mstatus, 8": None,
        "csrr a0, mstatus": None,
        "csrrc a0, mstatus, zero": None,
        "csrw mtvec, t0": None,
        "fscsr zero": None,
        "c.nop": None,
    },
    "virt-aarch64": {
        "msr daifset, #2": "msr daifset",
        "msr daifset, #15": "msr daifset",
        "msr daif, x3": "msr daif",
        "msr daifclr, #4": None,
        "mrs x0, daif": None,
        "msr fpcr, xzr": None,
    },
}
# What would read as one, were it code: data after the code, and in Thumb the second half of an instruction.
DATA = {"mps3-an547": ".short 0xb672", "virt-riscv64": "", "virt-aarch64": ".word 0xd50342df"}


@pytest.mark.qemu
@pytest.mark.parametrize("toolchain", ["gcc", "llvm"])
@pytest.mark.parametrize("board", LINES)
def test_each_encoding_is_told_apart(tmp_path: Path, board: str, toolchain: Compiler) -> None:
    lines = LINES[board]
    elf = assembled(tmp_path, board, toolchain, [*lines, DATA[board]])
    got, count = masking_instructions(elf, load_board(board).arch)
    assert [f.text for f in got] == [name for name in lines.values() if name is not None]
    assert {f.function for f in got} == {"probe"}
    assert count >= len(lines)


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("board", "line", "evidence"),
    [
        ("mps2-an386", "cpsid i", "cpsid at 0x"),
        ("virt-riscv32", "csrci mstatus, 8", "csrc mstatus at 0x"),
        ("virt-aarch64", "msr daifset, #2", "msr daifset at 0x"),
    ],
)
def test_an_engine_that_masks_is_seen(packs: Packs, tmp_path: Path, board: str, line: str, evidence: str) -> None:
    folder = packs.private(packs.folder("mixtral", "q8", board))
    helper = f'__attribute__((noinline, used)) static void mask_here(void)\n{{\n    __asm__ volatile("{line}");\n}}\n\n'
    edits = {
        "apps/common/app.c": ("int colibri_app(void)\n{\n", f"{helper}int colibri_app(void)\n{{\n    mask_here();\n")
    }
    elf = patched_build(folder, edits, tmp_path)
    problems, _ = no_masked_interrupt(Subject.read(elf.parent, folder, board_of(folder)))
    assert len(problems) == 1
    assert problems[0].startswith(evidence)
    assert problems[0].endswith("in mask_here")
