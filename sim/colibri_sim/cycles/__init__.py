# SPDX-License-Identifier: Apache-2.0
"""Cycles as an estimate: how often each block executed, exactly, times what the core's documents or LLVM's model say it takes.

Neither caches nor wait states, write buffers, mispredicted branches or interrupts are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from colibri_sim.cycles import mca, tables
from colibri_sim.cycles.disassembly import Code, disassemble
from colibri_sim.qemu.counter import Block

__all__ = ["MODELLED", "NOT_MODELLED", "SOURCES", "Code", "disassemble", "estimator", "source_of"]

SOURCES: dict[str, str] = {**{name: table.source for name, table in tables.TABLES.items()}, **mca.SOURCES}
"""The cores that have a model, as a board's TOML names them, and where it comes from."""
MODELLED = tuple(SOURCES)
NOT_MODELLED = (
    "caches, wait states and bus conflicts",
    "mispredicted branches, and which blocks follow each other",
    "instructions that take longer for some operands (the mean is taken)",
)

Estimate = Callable[[Sequence[Block]], float]


def source_of(cpu: str) -> str:
    """Where the model of a core comes from. KeyError for a core without one."""
    return SOURCES[cpu]


def estimator(cpu: str, elf: Path, blocks: Sequence[Sequence[Block]]) -> Estimate:
    """A function from executed blocks to cycles, for a core of MODELLED.

    blocks  all that it will be asked for, by window

    Raises ToolError where LLVM's tools are missing, NoVerdict where a block is not what the ELF holds.
    """
    code = disassemble(elf, cpu)
    if cpu in tables.TABLES:
        return lambda window: tables.cycles(tables.TABLES[cpu], code, window)
    taken = mca.cycles_of_blocks(cpu, code, {(b.start, b.n_insns): b for window in blocks for b in window}.values())
    return lambda window: sum(taken[b.start, b.n_insns] * b.executed for b in window)
