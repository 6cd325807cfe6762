# SPDX-License-Identifier: Apache-2.0
"""Cycles per token, counted by a real board and read over its serial port."""

from __future__ import annotations

from typing import Any

from colibri.cli import targets
from colibri.cli.bench.report import Build, ids_of, result, source_of, summary
from colibri.errors import NoVerdict
from colibri_sim.qemu.frames import END, CorruptResponse, Count, Frame, Message, Status, Walk, bench_request, message
from colibri_sim.serial import SerialPort


def measure(build: Build, timeout: float | None, port: SerialPort) -> dict[str, Any]:
    """One result of the board at the port. Raises NoVerdict where a frame is missing or the counter stands still."""
    at_port = targets.flashed(build.folder.path, "bench", build.toolchain, build.opt, port)
    ids = ids_of(build.folder)
    limit = at_port.timeout_for(len(ids) + 1, 24, timeout)
    answer = [_understood(frame) for frame in at_port.frames(bench_request(ids, source_of(build.folder)) + END, limit)]
    walk = [one for one in answer if isinstance(one, Walk)]
    counts = [one.count for one in answer if isinstance(one, Count) and one.count > 0]
    expected: list[Message] = [*walk, *(Count(i, count) for i, count in enumerate(counts)), Status(0, None)]
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
    counted = {"cycles_per_token": {str(i): count for i, count in enumerate(counts)}, "operators": {}}
    return result(build, counted, n_positions=len(ids), simulator=False)


def table(document: dict[str, Any]) -> str:
    """The counts, and what they are."""
    note = "cycles per token, by the board's own counter, at the positions named; engine, RAM and weights read in bytes"
    return f"{summary(document['results'], 'cycles_per_token')}\n{note}"


def _understood(frame: Frame) -> Message:
    try:
        return message(frame)
    except CorruptResponse as error:
        raise NoVerdict(
            "the board's answer", expected="a message of this protocol", got=str(error), hint="build and flash it again"
        ) from error
