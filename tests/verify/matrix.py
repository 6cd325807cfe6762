# SPDX-License-Identifier: Apache-2.0
"""make verify-matrix: every board, compiler, level and format that fits; one line each, exit code 1 where any differs.

A board that the demo model does not fit verifies micro-moe. Boards run side by side, one for each core. What could not be run
(an absent compiler, a simulator that dies) is exit code 4 or 5, as of `colibri verify`; a difference wins.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from colibri.boards import list_boards
from colibri.cli.options import NO_SETTINGS
from colibri.cli.workflow import fitting_boards
from colibri.errors import DoesNotFit

WEIGHTS = Path(__file__).parents[2] / "weights"
MODELS = ("stories-moe-3m", "micro-moe")
LEVELS = ("0", "2", "3", "s")
QUANTS = ("q8", "f32")
TOOLCHAINS = ("gcc", "llvm", "all")
COLIBRI = (sys.executable, "-m", "colibri.cli.main")


@dataclass(frozen=True)
class Row:
    """What is packed once: a board, a format and the first of MODELS that fits. None: no model does."""

    board: str
    quant: str
    model: str | None


def rows(boards: Iterable[str], quants: Iterable[str]) -> list[Row]:
    """Every board with every format."""
    found = []
    for quant in quants:
        fits = {model: _fitting(model, quant) for model in MODELS}
        found += [Row(b, quant, next((m for m in MODELS if b in fits[m]), None)) for b in boards]
    return found


def _fitting(model: str, quant: str) -> list[str]:
    try:
        return fitting_boards(WEIGHTS / model, NO_SETTINGS | {"quant": quant})
    except DoesNotFit:
        return []


def run(row: Row, levels: Sequence[str], toolchain: str, command: Sequence[str] = COLIBRI) -> list[int]:
    """Verify a row at each level; `colibri verify` prints a line for each compiler. Returns its exit codes."""
    if row.model is None:
        print(f"{row.board} {row.quant}: no model fits", flush=True)
        return []
    codes = []
    with tempfile.TemporaryDirectory() as work:
        for level in levels:
            arguments = ["verify", WEIGHTS / row.model, "-b", row.board, "-q", row.quant, "--opt", level]
            arguments += ["--toolchain", toolchain, "--work", Path(work) / "packed"]
            result = subprocess.run(
                [*command, *map(str, arguments)], capture_output=True, text=True, errors="replace", check=False
            )
            said = result.stdout if result.stdout else result.stderr
            print("".join(f"{row.model} {line}\n" for line in said.splitlines()), end="", flush=True)
            codes.append(result.returncode)
    return codes


def exit_code(codes: Sequence[int]) -> int:
    """1 where anything differs, else the largest of the others; a killed process and no row at all are failures."""
    if not codes:
        return 2
    return 1 if 1 in codes else max(code if code >= 0 else 5 for code in codes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the matrix, or the part of it that the options name."""
    parser = argparse.ArgumentParser(description="Verify every board, compiler, optimisation level and format.")
    parser.add_argument("--board", action="append", choices=list_boards(), help="only this board; may be repeated")
    parser.add_argument("--quant", action="append", choices=QUANTS, help="only this format; may be repeated")
    parser.add_argument("--opt", action="append", choices=LEVELS, help="only this level; may be repeated")
    parser.add_argument("--toolchain", choices=TOOLCHAINS, default="all", help="only this compiler")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="boards at once")
    chosen = parser.parse_args(arguments)
    todo = rows(chosen.board or list_boards(), chosen.quant or QUANTS)
    one = partial(run, levels=chosen.opt or LEVELS, toolchain=chosen.toolchain)
    with ThreadPoolExecutor(max_workers=chosen.jobs) as pool:
        codes = [code for found in pool.map(one, todo) for code in found]
    print(f"{len(codes)} runs of colibri verify, {codes.count(0)} without a difference")
    return exit_code(codes)


if __name__ == "__main__":
    sys.exit(main())
