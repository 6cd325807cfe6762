# SPDX-License-Identifier: Apache-2.0
"""colibri bench: instructions per token, counted exactly under QEMU. Instructions, never cycles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from colibri.build.firmware import RECORD
from colibri.cli import options, render, targets, workflow
from colibri.errors import NoVerdict
from colibri.folder import IMAGE, Folder, is_folder
from colibri_sim.qemu.counter import count
from colibri_sim.qemu.frames import END, bench_request

POSITIONS = 65
_BEGIN, _END = "colibri_bench_begin", "colibri_bench_end"
_SHOWN = (0, 31, 64)


@click.command("bench")
@options.TARGET
@click.option(
    "-b", "--board", "boards", metavar="BOARD", multiple=True, help="A board; may be repeated. [all that fit]"
)
@options.settings_options
@options.build_and_run(allow_all=True)
def command(
    target: Path,
    boards: tuple[str, ...],
    toolchain: str,
    opt: str,
    jobs: int,
    timeout: float | None,
    work: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Count the instructions of each token, and report code, RAM and bytes of weights read, per board."""
    chosen: list[str | None] = list(boards)
    if not boards:
        chosen = [None] if is_folder(target) else list(workflow.fitting_boards(target, values))
    results = [
        _bench(folder, one, opt, jobs, timeout)
        for folder in workflow.packed_each(target, chosen, values, work)
        for one in options.toolchains(toolchain)
    ]
    if as_json:
        render.document({"results": results})
        return
    header = ("board", "toolchain", "quant", *(f"at {p}" for p in _SHOWN), "MACs", "engine", "RAM", "weights read")
    print(render.table(header, [_row(result) for result in results]))
    print(
        "instructions per token under QEMU at the positions named (not cycles); engine, RAM and weights read in bytes"
    )


def _bench(folder: Folder, toolchain: str, opt: str, jobs: int, timeout: float | None) -> dict[str, Any]:
    board = workflow.board_of(folder)
    elf = targets.built(folder, board, "bench", toolchain, opt, jobs)
    product = targets.built(folder, board, "generate", toolchain, opt, jobs)
    record = json.loads((product.parent / RECORD).read_text())
    plan, vocab = folder.manifest["plan"], int(folder.manifest["vocab_size"])
    n = min(POSITIONS, int(folder.manifest["settings"]["max_seq"]))
    ids = [(17 * i + 1) % vocab for i in range(n)]
    marks = count(
        board,
        elf,
        bench_request(ids) + END,
        (_BEGIN, _END),
        image=folder.path / IMAGE if board.image == "mapped" else None,
        timeout_s=targets.timeout_for(folder, 4 * n, timeout),
    )
    begins, ends = ([number for name, number in marks if name == mark] for mark in (_BEGIN, _END))
    if len(begins) != n or len(ends) != n:
        raise NoVerdict(
            board.name,
            expected=f"{n} measured tokens",
            got=f"{len(begins)} begun, {len(ends)} ended",
            hint="build it again",
        )
    measured = record.get("measured") or {}
    ram = {name: part["bytes"] for name, part in plan["ram"]["parts"].items()}
    return {
        "board": board.name,
        "toolchain": toolchain,
        "compiler": record["compiler"],
        "opt": opt,
        "quant": folder.quant,
        "group": None,
        "instructions_per_token": {
            str(i): end - begin for i, (begin, end) in enumerate(zip(begins, ends, strict=True))
        },
        "macs_per_token": plan["macs_per_token"],
        "engine_bytes": sum(record["engine"].values()),
        "ram_bytes": _ram(measured, ram),
        "weight_bytes_read_per_token": plan["weight_bytes_read_per_token"],
        "operators": {},
    }


def _ram(measured: dict[str, int], planned: dict[str, int]) -> int:
    """RAM of the generate application; where an operating system gives the stack, what the plan counts."""
    parts = ("statics", "state", "logits", "stack")
    return sum(measured[p] for p in parts) if measured else sum(planned.values())


def _row(result: dict[str, Any]) -> tuple[object, ...]:
    at = result["instructions_per_token"]
    counts = (at.get(str(position), "") for position in _SHOWN)
    names = ("board", "toolchain", "quant")
    sizes = ("macs_per_token", "engine_bytes", "ram_bytes", "weight_bytes_read_per_token")
    return (*(result[n] for n in names), *counts, *(result[s] for s in sizes))
