# SPDX-License-Identifier: Apache-2.0
"""Whatever the caller's floating-point control register holds: the same bits, and it holds that afterwards, on a board."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from colibri.cli import targets
from colibri.cli.workflow import board_of
from colibri.folder import Folder
from colibri_sim.golden.sampler import Pcg32, sample
from colibri_sim.qemu.frames import END, Count, FullLogits, Logits, Message, Status, Token, encode, message
from colibri_sim.vectors import from_hex
from image.packs import IDS, Packs
from sampled import sampled

from .mutants import Edits, patched_build

APP = Path(__file__).with_name("fpcontrol.c")

# FPSCR: AHP, DN, FZ, RMode (26, 25, 24, 23:22) and the flags of all exceptions; FPCR has the first four at the same places
AHP, DN, FZ = 1 << 26, 1 << 25, 1 << 24
UP, DOWN, ZERO = 1 << 22, 2 << 22, 3 << 22
LTPSIZE = 4 << 16  # Armv8.1-M: no tail predication; what the ABI has at every call
FZ16 = 1 << 19
ARM = (UP, DOWN, ZERO, FZ, DN, AHP | DN | FZ | ZERO | 0x9F)
# fcsr: frm (7:5) and fflags (4:0). 5 is no rounding mode: an instruction that would use it is illegal
RISCV = (1 << 5, 2 << 5, 3 << 5, 4 << 5, 5 << 5, 1 << 5 | 0x1F)
# MXCSR: FTZ (15), RC (14:13), masks (12:7), DAZ (6), flags (5:0); the last raises every exception that an instruction has
MASKS = 0x1F80
X86 = (MASKS | 2 << 13, MASKS | 1 << 13, MASKS | 3 << 13, MASKS | 1 << 15, MASKS | 1 << 6, 0xFFFF, 0xE040)

CONTROLS: dict[str, tuple[int, ...]] = {
    "mps2-an386": ARM,
    "mps3-an547": tuple(c | LTPSIZE for c in (*ARM, FZ16)),
    "virt-riscv64": RISCV,
    "virt-aarch64": (*ARM[:-1], AHP | DN | FZ | ZERO, DN | UP | 0x0800_009F << 32),
    "linux-x86_64": X86,
}
NORMAL = {"mps3-an547": LTPSIZE, "linux-x86_64": MASKS}

# colibri_fp_enter that only saves; colibri_fp_leave that does nothing. Rounding shows the first: the engine makes no subnormal.
EMPTIED: dict[str, Edits] = {
    "mps2-an386": {"kernels/isa.h": ("vmrs %0, fpscr\\n\\tvmsr fpscr, %1", "vmrs %0, fpscr")},
    "mps3-an547": {"kernels/isa.h": ("vmrs %0, fpscr\\n\\tvmsr fpscr, %1", "vmrs %0, fpscr")},
    "virt-riscv64": {"kernels/isa.h": ("fscsr %0, zero", "frcsr %0")},
    "virt-aarch64": {"kernels/isa.h": ("\\n\\tmsr fpcr, xzr", "")},
    "linux-x86_64": {"kernels/isa.h": ("stmxcsr %0\\n\\tldmxcsr %1", "stmxcsr %0")},
}
NOT_RESTORED: dict[str, Edits] = {
    "mps2-an386": {"kernels/isa.h": ("vmsr fpscr, %0", "")},
    "mps3-an547": {"kernels/isa.h": ("vmsr fpscr, %0", "")},
    "virt-riscv64": {"kernels/isa.h": ("fscsr zero, %0", "")},
    "virt-aarch64": {"kernels/isa.h": ("msr fpcr, %0\\n\\tmsr fpsr, %1", "")},
    "linux-x86_64": {"kernels/isa.h": ("ldmxcsr %0", "")},
}


def answers(folder: Folder, elf: Path, controls: tuple[int, ...]) -> list[list[Message]]:
    """The application's answer under each control value, in one run; each ends with its status."""
    requests = [encode("V", struct.pack(f"<QI{len(IDS)}i", c, len(IDS), *IDS)) for c in controls]
    limit = targets.timeout_for(folder, 2 * len(IDS) * len(controls), None)
    found: list[list[Message]] = [[]]
    for frame in targets.frames(folder, board_of(folder), elf, b"".join(requests) + END, limit):
        found[-1].append(message(frame))
        if isinstance(found[-1][-1], Status):
            found.append([])
    assert found.pop() == []
    assert len(found) == len(controls)
    return found


def bits(values: np.ndarray) -> bytes:
    return np.ascontiguousarray(values, dtype="<f4").tobytes()


def wrong(folder: Folder, answer: list[Message]) -> str | None:
    """The first thing in an answer that is not the golden model's."""
    expected = [bits(from_hex(x)) for x in folder.vectors()["prompts"][0]["logits"]]
    status = answer[-1]
    assert isinstance(status, Status)
    if status.code != 0:
        return f"status {status.code}"
    steps = [bits(m.values) for m in answer if isinstance(m, Logits)]
    full = [bits(m.values) for m in answer if isinstance(m, FullLogits)]
    tokens = [m.id for m in answer if isinstance(m, Token)]
    assert (len(steps), len(full), len(tokens)) == (len(IDS), 2, 1)
    if steps != expected:
        return "colibri_step"
    if full[0] != expected[-1]:
        return "colibri_forward"
    if tokens != [sample(from_hex(folder.vectors()["prompts"][0]["logits"][-1]), 0.75, 0, 0.875, Pcg32(7))]:
        return "colibri_sample"
    return None


def left_by_sample(answer: list[Message]) -> bytes:
    return [bits(m.values) for m in answer if isinstance(m, FullLogits)][-1]


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("board", "toolchain", "quant"),
    sampled(
        [
            ("mps2-an386", "gcc", "f32"),
            ("mps3-an547", "gcc", "q8"),
            ("mps3-an547", "llvm", "f32"),
            ("virt-riscv64", "gcc", "q8"),
            ("virt-riscv64", "llvm", "f32"),
            ("virt-aarch64", "gcc", "f32"),
            ("virt-aarch64", "llvm", "q8"),
            ("linux-x86_64", "gcc", "f32"),
        ]
    ),
)
def test_no_setting_of_the_caller_changes_a_bit_and_each_is_restored(
    packs: Packs, tmp_path: Path, board: str, toolchain: Literal["gcc", "llvm"], quant: str
) -> None:
    folder = packs.private(packs.folder("mixtral", quant, board))
    elf = patched_build(folder, {}, tmp_path, app=APP, toolchain=toolchain, opt="2")
    controls = (NORMAL.get(board, 0), *CONTROLS[board])
    found = answers(folder, elf, controls)
    took = [m.count for answer in found for m in answer if isinstance(m, Count)]
    assert took == list(controls)  # so each bit is one that this core has
    assert [wrong(folder, answer) for answer in found] == [None] * len(controls)
    assert len({left_by_sample(answer) for answer in found}) == 1


@pytest.mark.qemu
@pytest.mark.parametrize("board", CONTROLS)
def test_an_engine_that_does_not_set_the_register_is_seen(packs: Packs, tmp_path: Path, board: str) -> None:
    folder = packs.private(packs.folder("mixtral", "f32", board))
    elf = patched_build(folder, EMPTIED[board], tmp_path, app=APP)
    rounding = CONTROLS[board][:3]
    found = answers(folder, elf, (NORMAL.get(board, 0), *rounding))
    assert wrong(folder, found[0]) is None
    assert all(wrong(folder, answer) for answer in found[1:])


@pytest.mark.qemu
@pytest.mark.parametrize("board", CONTROLS)
def test_an_engine_that_does_not_restore_the_register_is_seen(packs: Packs, tmp_path: Path, board: str) -> None:
    folder = packs.private(packs.folder("mixtral", "f32", board))
    elf = patched_build(folder, NOT_RESTORED[board], tmp_path, app=APP)
    found = answers(folder, elf, CONTROLS[board][:3])
    assert [wrong(folder, answer) for answer in found] == ["status -140"] * 3
