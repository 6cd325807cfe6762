# SPDX-License-Identifier: Apache-2.0
"""In-order cores whose cycles Arm's manuals list: a number for each class of instructions, with zero wait states.

Where a manual gives a range, the mean of what ordinary operands and addresses take stands here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colibri_sim.cycles.disassembly import Code, Insn
from colibri_sim.qemu.counter import Block


@dataclass(frozen=True)
class Table:
    """Cycles of a core.

    classes        by the classes of CLASSES; one that is missing takes 1
    refill         of the pipeline, on top, when a branch is taken
    load           a single load    next_load  one right behind another load or store
    store          a single store
    float_stall    on top, where an instruction needs the result that the floating-point one before it computes
    """

    source: str
    classes: Mapping[str, float]
    refill: float
    load: float = 2
    next_load: float = 2
    store: float = 2
    float_stall: float = 0


_ARMV6M = {"multiply": 1, "barrier": 4, "system": 4}
_M3 = {"accumulate": 2, "long": 4, "long accumulate": 5.5, "divide": 7, "barrier": 4, "system": 2}
_M4 = {"divide": 7, "barrier": 4, "system": 2, "fused": 3, "float divide": 14}

TABLES: dict[str, Table] = {
    "Cortex-M0": Table(
        "Cortex-M0 TRM (DDI 0432C) 3.3, single-cycle multiplier", _ARMV6M, refill=2, load=2, next_load=2, store=2
    ),
    "Cortex-M0+": Table(
        "Cortex-M0+ TRM (DDI 0484C) 3.3, single-cycle multiplier", _ARMV6M, refill=1, load=2, next_load=2, store=2
    ),
    "Cortex-M3": Table("Cortex-M3 TRM (DDI 0337I) 3.3", _M3, refill=2, load=2, next_load=1, store=1),
    "Cortex-M4F": Table(
        "Cortex-M4 TRM (100166) 3.3 and 7.2.3", _M4, refill=2, load=2, next_load=1, store=1, float_stall=1
    ),
    "Cortex-M33": Table(
        "as Cortex-M4, loads and branches a cycle less: Arm publishes no table; fitted to what an RP2350 takes",
        *(_M4, 1, 1, 1, 1, 1),
    ),
}

CLASSES = (
    ("float divide", r"v(div|sqrt)\."),
    ("fused", r"v(f?n?m[ls][as]|fn?m[as])\."),
    ("long accumulate", r"[su]mlal|umaal"),
    ("long", r"[su]mull"),
    ("accumulate", r"ml[as]\b"),
    ("divide", r"[su]div"),
    ("multiply", r"muls?\b"),
    ("barrier", r"(dsb|dmb|isb)"),
    ("system", r"(mrs|msr|cps|svc|bkpt)"),
)
"""Classes by the beginning of a mnemonic; the first that matches."""
_CLASSES = tuple((name, re.compile(pattern)) for name, pattern in CLASSES)
_MULTIPLE = re.compile(r"(v?push|v?pop|v?ldm\w*|v?stm\w*)")
_PAIR = re.compile(r"(ldrd|strd)")
_LOAD, _STORE = re.compile(r"v?ldr"), re.compile(r"v?str")
_JUMP = re.compile(r"(bl?x?|tb[bh])(\.w)?$")
_CONDITIONAL = re.compile(r"(b(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)(\.[nw])?|cbn?z)$")
_FLOAT_RESULT = re.compile(r"v(add|sub|n?mul|div|sqrt|cvt|f?n?m[ls][as]|fn?m[as])")


def cycles(table: Table, code: Code, window: Sequence[Block]) -> float:
    """Cycles of all executions of the blocks of a window."""
    total = 0.0
    for block in window:
        insns = code.of(block)
        total += block.executed * _straight(table, insns)
        if _CONDITIONAL.match(insns[-1].name):
            total += table.refill * (block.executed - block.next_in_memory)
    return total


def _straight(table: Table, insns: Sequence[Insn]) -> float:
    """Cycles of a block whose last branch, where it is conditional, is not taken."""
    total = 0.0
    before: Insn | None = None
    for insn in insns:
        total += _alone(table, insn, before)
        if table.float_stall and before is not None and _FLOAT_RESULT.match(before.name):
            result = before.operands.split(",")[0].strip()
            total += table.float_stall * (re.search(rf"\b{result}\b", _sources(insn)) is not None)
        before = insn
    return total


def _alone(table: Table, insn: Insn, before: Insn | None) -> float:
    name, operands = insn.name, insn.operands
    to_pc = table.refill if re.search(r"\bpc\b", operands.split("[")[0]) and not name.startswith("v") else 0
    if _MULTIPLE.match(name):
        return 1 + _registers(operands) + (to_pc if not name.startswith(("push", "stm")) else 0)
    if _PAIR.match(name):
        return 3
    if _LOAD.match(name) or _STORE.match(name):
        double = bool(re.match(r"d\d", operands))
        pipelined = before is not None and bool(_LOAD.match(before.name) or _STORE.match(before.name))
        single = table.store if _STORE.match(name) else table.next_load if pipelined else table.load
        return single + double + (to_pc if _LOAD.match(name) else 0)
    if _JUMP.match(name):
        return (2 if name.startswith("tb") else 1) + table.refill
    for kind, pattern in _CLASSES:
        if pattern.match(name):
            return table.classes.get(kind, 1)
    return 1 + to_pc


def _registers(operands: str) -> int:
    """How many words a register list moves: `{r4-r7, lr}` 5, `{d8-d15}` 16."""
    total = 0
    for part in operands[operands.index("{") + 1 : operands.index("}")].split(","):
        first, _, last = part.strip().partition("-")
        width = 2 if first.startswith("d") else 1
        total += width * (int(last[1:]) - int(first[1:]) + 1 if last else 1)
    return total


def _sources(insn: Insn) -> str:
    """The operands that an instruction reads: all but the first, unless it accumulates into that or stores it."""
    accumulates = re.match(r"v(f?n?m[ls][as]|fn?m[as])", insn.name) or _STORE.match(insn.name)
    reads_all = accumulates or insn.name.startswith(("vcmp", "vpush", "vstm"))
    return insn.operands if reads_all else insn.operands.partition(",")[2]
