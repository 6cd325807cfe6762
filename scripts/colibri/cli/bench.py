# SPDX-License-Identifier: Apache-2.0
"""colibri bench: instructions per token, counted exactly under QEMU; or cycles per token, counted by a real board.

The two are never mixed up: instructions come from the simulator only, cycles from hardware only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from colibri.boards import Board
from colibri.cli import options, render, targets, workflow
from colibri.errors import NoVerdict
from colibri.folder import IMAGE, Folder, is_folder, read_build
from colibri_sim.qemu.counter import count
from colibri_sim.qemu.frames import END, CorruptResponse, Count, Frame, Message, Status, bench_request, message
from colibri_sim.serial import SerialPort

POSITIONS = 65
_BEGIN, _END = "colibri_bench_begin", "colibri_bench_end"
_SHOWN = (0, 31, 64)


@click.command("bench")
@options.TARGET
@click.option(
    "-b", "--board", "boards", metavar="BOARD", multiple=True, help="A board; may be repeated. [all that fit]"
)
@options.settings_options
@options.SERIAL
@options.build_and_run(allow_all=True)
def command(
    target: Path,
    boards: tuple[str, ...],
    serial: SerialPort | None,
    toolchain: str,
    opt: str,
    jobs: int,
    timeout: float | None,
    work: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Count the instructions of each token (of a real board, cycles), and report code, RAM and bytes of weights read."""
    chosen: list[str | None] = list(boards)
    if not boards:
        chosen = [None] if is_folder(target) else list(workflow.fitting_boards(target, values))
    if serial is not None:
        targets.flashed(target, "bench", toolchain, opt, serial)
    results = [
        _bench_over_serial(folder, one, opt, jobs, timeout, serial)
        if serial is not None
        else _bench(folder, one, opt, jobs, timeout)
        for folder in workflow.packed_each(target, chosen, values, work)
        for one in options.toolchains(toolchain)
    ]
    if as_json:
        render.document({"results": results})
        return
    header = ("board", "toolchain", "quant", *(f"at {p}" for p in _SHOWN), "MACs", "engine", "RAM", "weights read")
    print(render.table(header, [_row(result) for result in results]))
    what = "cycles per token, by the board's own counter," if serial else "instructions per token under QEMU"
    never = "" if serial else " (not cycles)"
    print(f"{what} at the positions named{never}; engine, RAM and weights read in bytes")


def _bench(folder: Folder, toolchain: str, opt: str, jobs: int, timeout: float | None) -> dict[str, Any]:
    board = workflow.board_of(folder)
    elf = targets.built(folder, board, "bench", toolchain, opt, jobs)
    ids = _ids(folder)
    n = len(ids)
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
    counts = [end - begin for begin, end in zip(begins, ends, strict=True)]
    return _result(folder, board, toolchain, opt, jobs, "instructions_per_token", counts)


def _bench_over_serial(
    folder: Folder, toolchain: str, opt: str, jobs: int, timeout: float | None, port: SerialPort
) -> dict[str, Any]:
    at_port = targets.flashed(folder.path, "bench", toolchain, opt, port)
    ids = _ids(folder)
    limit = at_port.timeout_for(len(ids), 24, timeout)
    answer = [_understood(frame) for frame in at_port.frames(bench_request(ids) + END, limit)]
    counts = [one.count for one in answer if isinstance(one, Count) and one.count > 0]
    expected: list[Message] = [*(Count(i, count) for i, count in enumerate(counts)), Status(0, None)]
    if len(counts) != len(ids) or answer != expected:
        still = sum(isinstance(one, Count) and one.count == 0 for one in answer)
        raise NoVerdict(
            str(port),
            expected=f"{len(ids)} tokens with their cycles, then success",
            got=f"{still} counts of zero: the counter stands still"
            if still
            else f"{answer[-1]} after {len(counts)} counts",
            hint="this board (or simulator) has no cycle counter" if still else "build and flash it again",
        )
    return _result(folder, at_port.board, toolchain, opt, jobs, "cycles_per_token", counts, simulator=False)


def _understood(frame: Frame) -> Message:
    try:
        return message(frame)
    except CorruptResponse as error:
        raise NoVerdict(
            "the board's answer", expected="a message of this protocol", got=str(error), hint="build and flash it again"
        ) from error


def _ids(folder: Folder) -> list[int]:
    vocab = int(folder.manifest["vocab_size"])
    return [(17 * i + 1) % vocab for i in range(min(POSITIONS, int(folder.manifest["settings"]["max_seq"])))]


def _result(
    folder: Folder,
    board: Board,
    toolchain: str,
    opt: str,
    jobs: int,
    field: str,
    counts: list[int],
    *,
    simulator: bool = True,
) -> dict[str, Any]:
    product = targets.built(folder, board, "generate", toolchain, opt, jobs, simulator)
    record, plan = read_build(product.parent), folder.manifest["plan"]
    measured = record.get("measured") or {}
    ram = {name: part["bytes"] for name, part in plan["ram"]["parts"].items()}
    return {
        "board": board.name,
        "toolchain": toolchain,
        "compiler": record["compiler"],
        "opt": opt,
        "quant": folder.quant,
        "group": None,
        field: {str(i): count for i, count in enumerate(counts)},
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
    at = result.get("instructions_per_token") or result["cycles_per_token"]
    counts = (at.get(str(position), "") for position in _SHOWN)
    names = ("board", "toolchain", "quant")
    sizes = ("macs_per_token", "engine_bytes", "ram_bytes", "weight_bytes_read_per_token")
    return (*(result[n] for n in names), *counts, *(result[s] for s in sizes))
