# SPDX-License-Identifier: Apache-2.0
"""bench --constant-time: whether a step's instructions and addresses depend on the position alone (docs/NUMERICS.md 10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from colibri.audit.elf import Elf
from colibri.boards import Board
from colibri.cli import render, targets
from colibri.cli.bench.report import Build, source_of
from colibri.errors import NoVerdict, UsageError
from colibri.folder import Folder, read_build
from colibri_sim.constant_time import compare, random_prompts
from colibri_sim.operators import BEGIN, END_OF_TOKEN
from colibri_sim.qemu.frames import END, Status, Walk, bench_request, message
from colibri_sim.qemu.tracer import Range, trace

N_PROMPTS = 32
N_POSITIONS = 8
_EMBEDDING_TAG, _EXPERT_TAG = 1, 2
_EXPERT = re.compile(r"(layers\.\d+\..*?experts)\.(\d+)\.")


def measure(build: Build, timeout: float | None, n_positions: int = N_POSITIONS) -> dict[str, Any]:
    """The verdict for one board and toolchain. Raises UsageError for a board whose image has no address in the ELF."""
    folder, board = build.folder, build.board
    if not is_traceable(board):
        raise UsageError(
            "--constant-time",
            expected="a board whose weights have a fixed address",
            got=f"{board.name}, which maps them",
            hint="choose another board with -b: colibri boards",
        )
    elf = targets.built(folder, board, "bench", build.toolchain, build.opt, build.jobs)
    n = min(n_positions, int(folder.manifest["settings"]["max_seq"]))
    prompts = random_prompts(int(folder.manifest["vocab_size"]), N_PROMPTS, n)
    names, source = folder.manifest["settings"]["prefix"] or "colibri", source_of(folder)
    windows, frames = trace(
        board,
        elf,
        b"".join(bench_request(ids, None if source is None else ids[: len(source)]) for ids in prompts) + END,
        (BEGIN, END_OF_TOKEN),
        f"{names}_stage_run",
        list(ranges(folder, elf)),
        timeout_s=targets.timeout_for(folder, 8 * N_PROMPTS * (n + 1), timeout),
    )
    answers = [message(frame) for frame in frames]
    statuses = [one.code for one in answers if isinstance(one, Status)]
    walk = [one for one in answers if isinstance(one, Walk)]
    if statuses != [0] * N_PROMPTS or len(windows) != N_PROMPTS * n:
        raise NoVerdict(
            board.name,
            expected=f"{N_PROMPTS} prompts of {n} positions",
            got=f"statuses {sorted(set(statuses))}, {len(windows)} positions",
            hint="build it again",
        )
    by_prompt = [windows[i : i + n] for i in range(0, len(windows), n)]
    timing = compare(by_prompt, walk)
    difference = timing.first_difference
    return {
        "board": board.name,
        "toolchain": build.toolchain,
        "compiler": read_build(elf.parent)["compiler"],
        "opt": build.opt,
        "quant": folder.quant,
        "kv": folder.manifest["settings"]["kv"],
        "prompts": N_PROMPTS,
        "holds": timing.holds,
        "by_design": folder.manifest["plan"]["depends_on_data"],
        "positions": [vars(position) for position in timing.positions],
        "first_difference": None if difference is None else vars(difference),
    }


def ranges(folder: Folder, elf: Path) -> Iterator[Range]:
    """What the token and the router choose, and addresses tell: which row of the embedding and which expert. And what is no part
    of a step: the port's counter.
    """
    weights = int(folder.manifest["settings"]["weights_address"])
    blocks: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for tensor in folder.manifest["tensors"]:
        start = weights + tensor["offset"]
        if tensor["name"] == "embed.weight":
            yield Range("once", start, start + tensor["bytes"], _EMBEDDING_TAG)
        expert = _EXPERT.match(tensor["name"])
        if expert:
            blocks.setdefault((expert[1], expert[2]), []).append((start, start + tensor["bytes"]))
    tags: dict[str, int] = {}
    for (group, _), parts in blocks.items():
        low, high = min(low for low, _ in parts), max(high for _, high in parts)
        yield Range("same", low, high, tags.setdefault(group, _EXPERT_TAG + len(tags)))
    symbols = Elf.read(elf)
    for name in ("colibri_port_cycles", "colibri_board_ticks"):
        function = symbols.symbol(name)
        if function is not None:
            yield Range("skip", function.address & ~1, (function.address & ~1) + function.bytes)


def is_traceable(board: Board) -> bool:
    """Whether the board's weights have an address that the ELF knows."""
    return board.image == "linked"


def table(document: dict[str, Any]) -> str:
    """One row a result: the verdict, and where the first difference is; then which axes make it so by design."""
    header = ("board", "toolchain", "quant", "kv", "constant", "instructions", "first difference")
    rows = render.table(header, [_row(one) for one in document["results"]])
    axes = dict.fromkeys(axis for one in document["results"] for axis in one["by_design"])
    if not axes:
        return rows
    return f"{rows}\n\nnot constant by design, and not claimed (NUMERICS.md 10): {', '.join(axes)}"


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    spread = max((p["most"] - p["fewest"]) / p["fewest"] for p in one["positions"])
    first = one["first_difference"]
    where = (
        ""
        if first is None
        else "{what} of {stage}, layer {layer}, position {position}, prompt {prompt}".format(**first)
    )
    same = all(p["code_traces"] == 1 for p in one["positions"])
    counts = "the same" if same else f"up to {100 * spread:.2f} % more"
    names = ("board", "toolchain", "quant", "kv")
    return (*(one[name] for name in names), "yes" if one["holds"] else "NO", counts, where)
