# SPDX-License-Identifier: Apache-2.0
"""Estimated cycles: each class of instructions by the manual's number, two bounds, and never without being called an estimate."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli.command import MIXTRAL, call, validate
from colibri.boards import Timing, load_board
from colibri.cli.bench.estimate import memory_cycles
from colibri.data import data_path
from colibri.errors import NoVerdict
from colibri_sim.cycles import MODELLED, SOURCES
from colibri_sim.cycles.disassembly import Code, Insn
from colibri_sim.cycles.tables import TABLES, cycles
from colibri_sim.qemu.counter import Block


def code_of(*lines: str) -> tuple[Code, Block]:
    insns = [Insn(*(line.split(" ", 1) if " " in line else (line, ""))) for line in lines]
    places = {2 * i: (insn, 2 * i + 2) for i, insn in enumerate(insns)}
    return Code(Path("a.elf"), places), Block(0, 2 * len(insns), len(insns), 1, 0)


def cycles_of(cpu: str, *lines: str) -> float:
    code, block = code_of(*lines)
    return cycles(TABLES[cpu], code, [block])


@pytest.mark.parametrize(
    ("cpu", "lines", "expected"),
    [
        ("Cortex-M4F", ["adds r0, r1, r2", "smlad r0, r1, r2, r0", "umull r0, r1, r2, r3"], 3),
        ("Cortex-M3", ["mla r0, r1, r2, r3", "umull r0, r1, r2, r3", "mul r0, r1, r2"], 2 + 4 + 1),
        ("Cortex-M4F", ["ldr r0, [r1]"], 2),
        ("Cortex-M4F", ["ldr r0, [r1]", "ldr r2, [r1, #4]", "str r0, [r3]"], 2 + 1 + 1),
        ("Cortex-M4F", ["ldm r0!, {r4, r5, r6-r8, lr}"], 1 + 6),
        ("Cortex-M4F", ["vldmia r0!, {s0-s7}"], 1 + 8),
        ("Cortex-M4F", ["vpush {d8-d9}"], 1 + 4),
        ("Cortex-M4F", ["pop {r4, pc}"], 1 + 2 + 2),
        ("Cortex-M0", ["pop {r4, pc}"], 1 + 2 + 2),
        ("Cortex-M0", ["ldr r0, [r1]", "ldr r2, [r1]", "str r2, [r1]"], 6),
        ("Cortex-M4F", ["bl ."], 3),
        ("Cortex-M0+", ["bx lr"], 2),
        ("Cortex-M4F", ["vfma.f32 s0, s1, s2", "vdiv.f32 s3, s4, s5", "vsqrt.f32 s6, s7"], 3 + 14 + 14),
        ("Cortex-M4F", ["vadd.f32 s0, s1, s2", "vmul.f32 s3, s0, s4"], 2 + 1),
        ("Cortex-M4F", ["vadd.f32 s0, s1, s2", "vmul.f32 s3, s1, s4", "vmul.f32 s5, s0, s4"], 3),
        ("Cortex-M4F", ["vfma.f32 s0, s1, s2", "vfma.f32 s0, s3, s4"], 3 + 3 + 1),
    ],
)
def test_each_class_takes_what_its_manual_says(cpu: str, lines: list[str], expected: float) -> None:
    assert cycles_of(cpu, *lines) == expected


def test_a_taken_branch_refills_the_pipeline() -> None:
    code, block = code_of("subs r0, #1", "bne .")
    for executed, not_taken in ((10, 10), (10, 1)):
        window = [Block(block.start, block.n_bytes, block.n_insns, executed, not_taken)]
        assert cycles(TABLES["Cortex-M4F"], code, window) == 2 * executed + 2 * (executed - not_taken)


def test_a_block_that_the_elf_does_not_hold_is_no_verdict() -> None:
    code, block = code_of("nop", "nop")
    with pytest.raises(NoVerdict, match="3 instructions"):
        code.of(Block(block.start, 6, 3, 1, 0))


def test_memory_is_read_line_by_line() -> None:
    timing = Timing(100_000_000, flash_read_mb_s=50, line_bytes=32, line_latency_cycles=10)
    assert memory_cycles(timing, 64) == 2 * (10 + 64)
    assert memory_cycles(timing, 65) == 3 * (10 + 64)
    assert memory_cycles(Timing(100_000_000), 64) is memory_cycles(None, 64) is None


def board_with_flash(folder: Path) -> Path:
    path = folder / "own-an386.toml"
    text = (data_path("linker") / "boards" / "mps2-an386.toml").read_text().replace('"mps2-an386"', '"own-an386"', 1)
    path.write_text(text + "flash_read_mb_s = 50\nline_bytes = 32\nline_latency_cycles = 10\n")
    return path


@pytest.mark.qemu
def test_two_bounds_and_their_sources(tmp_path: Path) -> None:
    board = board_with_flash(tmp_path)
    result = call("bench", MIXTRAL, "-b", board, "-b", "mps3-an547", "--estimate", "--json")
    assert result.code == 0, result.err
    validate(result.document, "bench-estimate")
    with_flash, without = result.document["results"]
    for row in (with_flash, without):
        for found in row["estimate"].values():
            memory = found["memory_cycles"] or 0
            assert found["cycles_at_least"] == max(found["compute_cycles"], memory)
            assert found["cycles_at_most"] == found["compute_cycles"] + memory
            assert 0.5 < found["compute_cycles"] / found["instructions"] < 4
    assert with_flash["estimate"]["0"]["memory_cycles"] > 0
    assert without["estimate"]["0"]["memory_cycles"] is None
    assert any("memory" in text for text in without["not_modelled"])
    assert "ESTIMATED cycles per token, not measured" in call("bench", MIXTRAL, "-b", board, "--estimate").out


def test_a_core_without_a_model_is_refused() -> None:
    result = call("bench", MIXTRAL, "-b", "virt-riscv32", "--estimate")
    assert result.code == 2
    assert "Cortex-M4F" in result.error_lines()[0]


@pytest.mark.qemu
def test_llvms_tools_missing_are_named_with_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr("shutil.which", lambda name, *rest: None if "llvm-mca" in name else which(name, *rest))
    result = call("bench", MIXTRAL, "-b", "mps3-an547", "--estimate")
    assert result.code == 4
    assert result.error_lines()[1].endswith("llvm-19")
    found = {one["what"]: one for one in call("doctor", "--json").document["findings"]}
    assert (found["llvm-mca-19"]["ok"], found["llvm-mca-19"]["package"]) == (False, "llvm-19")
    assert found["llvm-objdump-19"]["ok"]


def test_every_model_has_a_source_and_a_board() -> None:
    assert all(SOURCES[cpu] for cpu in MODELLED)
    boards = {load_board(path.stem).cpu for path in (data_path("linker") / "boards").glob("*.toml")}
    assert set(MODELLED) - boards == {"Cortex-M0+"}
