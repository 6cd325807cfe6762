# SPDX-License-Identifier: Apache-2.0
"""A semihosting trap is found in a hardware build, whichever it is, and only there; a simulator's build claims nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.command import call
from colibri.audit.claims import Subject, audit, no_semihosting_trap
from colibri.audit.semihosting import semihosting_traps
from colibri.boards import list_boards, load_board
from colibri.build.firmware import BuildOptions, build
from colibri.cli.workflow import board_of
from colibri.folder import Folder
from image.packs import Packs
from sampled import chosen
from verify.mutants import patched_build

from .probe import Compiler, assembled

SLLI, EBREAK, SRAI = "slli zero, zero, 31", "ebreak", "srai zero, zero, 7"
RISCV_TRAP = (".option push", ".option norvc", SLLI, EBREAK, SRAI, ".option pop")

# Lines: how many traps they are. A neighbour differs from one in as little as can be.
LINES: dict[str, list[tuple[tuple[str, ...], int]]] = {
    "arm-m": [
        (("bkpt 0xab",), 1),
        (("bkpt 0xab", "bkpt 0xab"), 2),
        (("it eq", "bkpt 0xab"), 1),
        (("bkpt 0xac",), 0),
        (("bkpt 0",), 0),
        (("svc 0xab",), 0),
        (("udf 0xab",), 0),
        (("movw r0, #0xbeab",), 0),
        (("b 1f", ".short 0xbeab", "1: nop"), 0),
    ],
    "riscv": [
        (RISCV_TRAP, 1),
        ((*RISCV_TRAP, *RISCV_TRAP), 2),
        ((".option norvc", SLLI, ".option rvc", ".option norvc", EBREAK, ".option rvc", ".option norvc", SRAI), 1),
        ((EBREAK,), 0),
        ((".option norvc", EBREAK), 0),
        ((".option norvc", SLLI, EBREAK), 0),
        ((".option norvc", EBREAK, SRAI), 0),
        ((".option norvc", SLLI, EBREAK, "nop", SRAI), 0),
        ((".option norvc", "slli zero, zero, 30", EBREAK, SRAI), 0),
        ((".option norvc", SLLI, EBREAK, "srai zero, zero, 8"), 0),
        ((".option norvc", SLLI, "ecall", SRAI), 0),
        ((".option norvc", SLLI, ".option rvc", "c.ebreak", ".option norvc", SRAI), 0),
    ],
    "aarch64": [
        (("hlt 0xf000",), 1),
        (("hlt 0xf001",), 0),
        (("hlt 0",), 0),
        (("brk 0xf000",), 0),
        (("svc 0xf000",), 0),
        (("b 1f", ".word 0xd45e0000", "1: nop"), 0),
    ],
}
BOARD = {"arm-m": "mps2-an386", "riscv": "virt-riscv64", "aarch64": "virt-aarch64"}
CASES = [(arch, lines, n) for arch, cases in LINES.items() for lines, n in cases]


@pytest.mark.qemu
@pytest.mark.parametrize("toolchain", ["gcc", "llvm"])
@pytest.mark.parametrize(("arch", "lines", "expected"), CASES)
def test_a_trap_is_told_from_its_neighbours(
    tmp_path: Path, arch: str, lines: tuple[str, ...], expected: int, toolchain: Compiler
) -> None:
    elf = assembled(tmp_path, BOARD[arch], toolchain, ["nop", *lines, "nop"])
    found, count = semihosting_traps(elf, arch)
    assert [f.function for f in found] == ["probe"] * expected
    assert count > 2


def hardware(folder: Folder, scratch: Path, trap: tuple[str, ...], toolchain: Compiler) -> Subject:
    """A hardware build whose application can come to a trap."""
    text = "".join(f'"{line}\\n\\t"\n' for line in trap)
    helper = (
        f"__attribute__((noinline, used)) static void ask_the_host(void)\n{{\n    __asm__ volatile({text});\n}}\n\n"
    )
    main = "int colibri_app(void)\n{\n"
    edits = {"apps/common/app.c": (main, f"{helper}{main}    ask_the_host();\n")} if trap else {}
    elf = patched_build(folder, edits, scratch, toolchain=toolchain, simulator=False)
    return Subject.read(elf.parent, folder, board_of(folder))


TRAPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # a trap, and what is none
    "mps2-an385": (("bkpt 0xab",), ("bkpt 0xac",)),
    "mps3-an547": (("bkpt 0xab",), ("bkpt 0xac",)),
    "microbit": (("bkpt 0xab",), ("bkpt 0xac",)),
    "virt-riscv32": (RISCV_TRAP, (EBREAK,)),
    "virt-riscv64": (RISCV_TRAP, (EBREAK,)),
    "virt-aarch64": (("hlt 0xf000",), ("hlt 0xf001",)),
}


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("board", "toolchain"),
    chosen(
        ((b, t) for b in TRAPS for t in ("gcc", "llvm")),
        {("mps3-an547", "gcc"), ("virt-riscv32", "llvm"), ("virt-aarch64", "gcc")},
    ),
)
def test_a_hardware_build_with_a_trap_breaks_the_claim_and_one_with_a_neighbour_does_not(
    packs: Packs, tmp_path: Path, board: str, toolchain: Compiler
) -> None:
    chosen = {"max_seq": 9} if board == "microbit" else {}
    folder = packs.private(packs.folder("mixtral", "q8", board, ids=(1, 5, 2, 7), **chosen))
    trap, neighbour = TRAPS[board]
    claims = {c.name: c for c in audit(hardware(folder, tmp_path / "trap", trap, toolchain))}
    assert [name for name, claim in claims.items() if not claim.holds] == ["No semihosting trap"]
    assert claims["No semihosting trap"].evidence.endswith("in ask_the_host")
    claims = {c.name: c for c in audit(hardware(folder, tmp_path / "neighbour", neighbour, toolchain))}
    assert all(claim.holds for claim in claims.values())
    assert claims["No semihosting trap"].evidence.endswith("instructions looked at")


@pytest.mark.qemu
@pytest.mark.parametrize("board", BOARD.values())
def test_a_simulator_build_has_the_trap_and_claims_nothing(packs: Packs, board: str) -> None:
    folder = packs.folder("mixtral", "q8", board)
    subject = Subject.read(packs.built(folder, "generate"), folder, board_of(folder))
    problems, _ = no_semihosting_trap(subject)
    assert len(problems) == 1
    assert problems[0].endswith("in colibri_semihosting_call")
    assert not any("semihosting" in claim.name for claim in audit(subject))


@pytest.mark.qemu
def test_the_command_prints_the_line_for_hardware_only(packs: Packs) -> None:
    folder = packs.private(packs.folder("mixtral", "q8", "mps2-an386"))
    for simulator in (True, False):
        build(folder, board_of(folder), BuildOptions("generate", "gcc", "2", simulator=simulator))
    result = call("audit", folder.path, "--json")
    assert result.code == 0
    found = [claim for claim in result.document["claims"] if claim["name"] == "No semihosting trap"]
    assert [(claim["build"], claim["holds"]) for claim in found] == [("generate-gcc-hw", True)]
    assert "ok   generate-gcc-hw: No semihosting trap (" in call("audit", folder.path).out


def test_every_kind_of_board_that_has_hardware_is_tried() -> None:
    boards = [load_board(name) for name in list_boards()]
    assert {board.arch for board in boards if board.image == "linked"} == set(LINES)
