# SPDX-License-Identifier: Apache-2.0
"""Instructions per token under QEMU: by position, operator, layer and function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri.cli import render, targets
from colibri.cli.bench.functions import function_names
from colibri.cli.bench.macs import macs
from colibri.cli.bench.report import SHOWN, Build, ids_of, result, source_of
from colibri.errors import NoVerdict
from colibri.folder import IMAGE
from colibri_sim.operators import BEGIN, END_OF_TOKEN, Token, attribute
from colibri_sim.qemu.counter import Block, profile
from colibri_sim.qemu.frames import END, Walk, bench_request, message

RUN_SLICE = "run_slice"


@dataclass(frozen=True)
class Measured:
    """Every token that was measured, and the blocks that it executed."""

    elf: Path
    tokens: list[Token]
    blocks: list[list[Block]]


def measure_tokens(build: Build, timeout: float | None) -> Measured:
    """Count the tokens of `ids_of` one after the other. Raises NoVerdict where the counts do not add up."""
    folder, board = build.folder, build.board
    elf = targets.built(folder, board, "bench", build.toolchain, build.opt, build.jobs)
    ids = ids_of(folder)
    stage_run = f"{folder.manifest['settings']['prefix'] or 'colibri'}_stage_run"
    run = profile(
        board,
        elf,
        bench_request(ids, source := source_of(folder)) + END,
        (BEGIN, END_OF_TOKEN),
        [stage_run],
        [RUN_SLICE],
        image=folder.path / IMAGE if board.image == "mapped" else None,
        timeout_s=targets.timeout_for(folder, 4 * len(ids), timeout, 4 * len(source or ())),
    )
    walk = [one for frame in run.frames if isinstance(one := message(frame), Walk)]
    tokens = attribute(run.events, walk, len(ids), stage_run=stage_run, run_slice=RUN_SLICE)
    for token, blocks in zip(tokens, run.windows, strict=True):
        in_blocks, in_operators = sum(b.executed * b.n_insns for b in blocks), sum(token.operators.values())
        if not token.instructions == in_blocks == in_operators:
            raise NoVerdict(
                board.name,
                expected=f"{token.instructions} instructions in blocks and in operators",
                got=f"{in_blocks} and {in_operators}",
                hint="this is a bug of colibri, please report it",
            )
    return Measured(elf, tokens, run.windows)


def measure(build: Build, timeout: float | None) -> dict[str, Any]:
    """One result: the JSON fields of docs/schemas/bench.schema.json."""
    measured = measure_tokens(build, timeout)
    tokens = dict(enumerate(measured.tokens))
    plan = build.folder.manifest["plan"]
    by_position, weights = {i: macs(plan, i) for i in tokens}, plan["macs_per_token"]
    counted = {
        "instructions_per_token": {str(i): token.instructions for i, token in tokens.items()},
        "instructions_per_mac": {str(i): round(token.instructions / weights, 4) for i, token in tokens.items()},
        "operators": {
            name: {
                "instructions": {str(i): token.operators[name] for i, token in tokens.items()},
                "macs": {str(i): by_position[i].get(name, 0) for i in tokens},
            }
            for name in tokens[0].operators
        },
        "layers": [
            {str(i): token.layers[layer] for i, token in tokens.items()} for layer in range(len(tokens[0].layers))
        ],
        "functions": _by_function(measured),
    }
    return result(build, counted, n_positions=len(tokens))


def _by_function(measured: Measured) -> dict[str, dict[str, int]]:
    """Instructions by function at the positions shown, most first."""
    name_of = function_names(measured.elf)
    found: dict[str, dict[str, int]] = {}
    for position in SHOWN:
        for block in measured.blocks[position] if position < len(measured.blocks) else []:
            row = found.setdefault(name_of(block.start), {})
            row[str(position)] = row.get(str(position), 0) + block.executed * block.n_insns
    return dict(sorted(found.items(), key=lambda item: (-max(item[1].values()), item[0])))


def by_operator(results: Sequence[dict[str, Any]]) -> str:
    """Operators, and layers, as rows, results as columns: instructions at the last position that all have."""
    last = min(max(map(int, one["instructions_per_token"])) for one in results)
    at = str(min(last, max(SHOWN)))
    names = list(dict.fromkeys(name for one in results for name in one["operators"]))
    header = (f"at position {at}", *(f"{one['board']} {one['toolchain']}" for one in results))
    rows: list[tuple[object, ...]] = []
    for name in names:
        operators = (one["operators"].get(name) for one in results)
        rows.append((name, *("" if operator is None else operator["instructions"][at] for operator in operators)))
    rows.append(("in all", *(one["instructions_per_token"][at] for one in results)))
    for layer in range(max(len(one["layers"]) for one in results)):
        within = (one["layers"][layer] if layer < len(one["layers"]) else {} for one in results)
        rows.append((f"of these, layer {layer}", *(counts.get(at, "") for counts in within)))
    rows.append(("a MAC of the weights", *(f"{one['instructions_per_mac'][at]:.3f}" for one in results)))
    rows.append(("MACs of attention", *(one["attention_macs_per_token"][at] for one in results)))
    return render.table(header, rows)
