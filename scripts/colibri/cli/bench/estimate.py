# SPDX-License-Identifier: Apache-2.0
"""bench --estimate: cycles per token as an estimate: exact counts of blocks, a model of the core and of the memory."""

from __future__ import annotations

import math
from typing import Any

from colibri.boards import Board, Timing
from colibri.cli import render
from colibri.cli.bench.instructions import measure_tokens
from colibri.cli.bench.report import SHOWN, Build
from colibri.errors import UsageError
from colibri.folder import read_build
from colibri_sim.cycles import MODELLED, NOT_MODELLED, estimator, source_of

NO_MEMORY = "the memory that holds the weights: this board's description has no flash_read_mb_s"


def is_modelled(board: Board) -> bool:
    """Whether the board's core has a model."""
    return board.cpu in MODELLED


def require_model(board: Board) -> None:
    """Raise UsageError for a core without one."""
    if not is_modelled(board):
        raise UsageError(
            f"--estimate, board {board.name}",
            expected=f"a core with a model: {', '.join(MODELLED)}",
            got=board.cpu,
            hint="instructions are counted on every board: leave --estimate out",
        )


def measure(build: Build, timeout: float | None) -> dict[str, Any]:
    """One result. Raises UsageError for a core without a model, ToolError where LLVM's tools are missing."""
    board, plan = build.board, build.folder.manifest["plan"]
    require_model(board)
    measured = measure_tokens(build, timeout)
    shown = [position for position in SHOWN if position < len(measured.tokens)]
    windows = [measured.blocks[position] for position in shown]
    estimate = estimator(board.cpu, measured.elf, windows)
    memory = memory_cycles(board.timing, int(plan["weight_bytes_read_per_token"]))
    positions = {}
    for position, window in zip(shown, windows, strict=True):
        compute = round(estimate(window))
        positions[str(position)] = {
            "instructions": measured.tokens[position].instructions,
            "compute_cycles": compute,
            "memory_cycles": memory,
            "cycles_at_least": max(compute, memory or 0),
            "cycles_at_most": compute + (memory or 0),
        }
    return {
        "board": board.name,
        "cpu": board.cpu,
        "toolchain": build.toolchain,
        "compiler": read_build(measured.elf.parent)["compiler"],
        "opt": build.opt,
        "quant": build.folder.quant,
        "estimate": positions,
        "clock_hz": board.timing.clock_hz if board.timing else None,
        "model": source_of(board.cpu),
        "not_modelled": [*NOT_MODELLED, *([NO_MEMORY] if memory is None else [])],
    }


def memory_cycles(timing: Timing | None, weight_bytes: int) -> int | None:
    """Core cycles to read so many bytes of weights line by line, each once; None where the board does not say how fast."""
    if timing is None or timing.flash_read_mb_s is None:
        return None
    lines = math.ceil(weight_bytes / timing.line_bytes)
    transfer = timing.line_bytes * timing.clock_hz / (timing.flash_read_mb_s * 1e6)
    return round(lines * (timing.line_latency_cycles + transfer))


def table(document: dict[str, Any]) -> str:
    """The bounds, one row a position, and what is not in them."""
    results = document["results"]
    header = ("board", "toolchain", "quant", "position", "compute", "memory", "at least", "at most", "ms")
    rows = [
        (
            *(one["board"], one["toolchain"], one["quant"], int(position)),
            *(found["compute_cycles"], "not modelled" if found["memory_cycles"] is None else found["memory_cycles"]),
            *(found["cycles_at_least"], found["cycles_at_most"], _milliseconds(one, found)),
        )
        for one in results
        for position, found in one["estimate"].items()
    ]
    models = dict.fromkeys(f"{one['cpu']}: {one['model']}" for one in results)
    missing = dict.fromkeys(text for one in results for text in one["not_modelled"])
    lines = [
        render.table(header, rows),
        "",
        "ESTIMATED cycles per token, not measured: instructions executed (exact) times cycles of a model:",
        *(f"  {text}" for text in models),
        "at least: the longer of compute and memory; at most: both, one after the other. Not modelled:",
        *(f"  {text}" for text in missing),
    ]
    return "\n".join(lines)


def _milliseconds(one: dict[str, Any], found: dict[str, Any]) -> str:
    if one["clock_hz"] is None:
        return ""
    low, high = (1e3 * found[name] / one["clock_hz"] for name in ("cycles_at_least", "cycles_at_most"))
    return f"{low:.1f}" if low == high else f"{low:.1f} to {high:.1f}"
