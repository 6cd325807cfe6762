# SPDX-License-Identifier: Apache-2.0
"""One result of bench: what was counted, beside the sizes that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from colibri.boards import Board
from colibri.cli import render, targets
from colibri.cli.bench.macs import SOURCE_TOKENS, attention_macs, groups
from colibri.folder import Folder, read_build

POSITIONS = 65
SHOWN = (0, 31, 64)


@dataclass(frozen=True)
class Build:
    """How a result's program was built."""

    folder: Folder
    board: Board
    toolchain: str
    opt: str
    jobs: int


def ids_of(folder: Folder) -> list[int]:
    """The token ids that are measured: any would do, the count depends on the position alone."""
    vocab = int(folder.manifest["vocab_size"])
    return [(17 * i + 1) % vocab for i in range(min(POSITIONS, int(folder.manifest["settings"]["max_seq"])))]


def source_of(folder: Folder) -> list[int] | None:
    """The source before them; None: the model has no encoder."""
    max_source = folder.manifest["settings"].get("max_source")
    vocab = int(folder.manifest["vocab_size"])
    return None if max_source is None else [(13 * i + 5) % vocab for i in range(min(SOURCE_TOKENS, max_source))]


def result(build: Build, counted: dict[str, Any], *, n_positions: int, simulator: bool = True) -> dict[str, Any]:
    """The JSON of one board and toolchain; `counted` are the fields that say what was measured."""
    folder = build.folder
    product = targets.built(folder, build.board, "generate", build.toolchain, build.opt, build.jobs, simulator)
    record, plan = read_build(product.parent), folder.manifest["plan"]
    planned = {name: part["bytes"] for name, part in plan["ram"]["parts"].items()}
    return {
        "board": build.board.name,
        "toolchain": build.toolchain,
        "compiler": record["compiler"],
        "opt": build.opt,
        "quant": folder.quant,
        "group": groups(folder),
        **counted,
        "macs_per_token": plan["macs_per_token"],
        "attention_macs_per_token": {str(i): attention_macs(plan, i) for i in range(n_positions)},
        "engine_bytes": sum(record["engine"].values()),
        "engine_functions": record["engine"],
        "ram_bytes": _ram(record.get("measured") or {}, planned),
        "weight_bytes_read_per_token": plan["weight_bytes_read_per_token"],
    }


def _ram(measured: dict[str, int], planned: dict[str, int]) -> int:
    """RAM of the generate application; where an operating system gives the stack, what the plan counts."""
    parts = ("statics", "state", "logits", "stack")
    return sum(measured[p] for p in parts) if measured else sum(planned.values())


def summary(results: Sequence[dict[str, Any]], field: str) -> str:
    """The table of all results: counts at the positions shown, and sizes."""
    header = ("board", "toolchain", "quant", *(f"at {p}" for p in SHOWN), "MACs", "engine", "RAM", "weights read")
    sizes = ("macs_per_token", "engine_bytes", "ram_bytes", "weight_bytes_read_per_token")
    rows = [
        (
            *(one[name] for name in ("board", "toolchain", "quant")),
            *(one[field].get(str(position), "") for position in SHOWN),
            *(one[name] for name in sizes),
        )
        for one in results
    ]
    return render.table(header, rows)
