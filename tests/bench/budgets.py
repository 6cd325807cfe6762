# SPDX-License-Identifier: Apache-2.0
"""make bench-budgets: measure again and rewrite linker/instructions.toml; ARGS="--board mps2-an386 --toolchain gcc" a part of it.

The figures are exact, so a change of more than TOLERANCE in either direction is a decision: a slower engine is refused, a faster
one is written down here, or a later loss would hide behind it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.text_cost import ALGORITHMS, instructions
from cli.command import call
from colibri.boards import list_boards
from colibri.cli.options import NO_SETTINGS
from colibri.cli.workflow import fitting_boards
from colibri.errors import DoesNotFit
from colibri.text.device import Algorithm

ROOT = Path(__file__).parents[2]
FILE = ROOT / "linker" / "instructions.toml"
MODELS = ("stories-moe-3m", "micro-moe")
QUANTS = ("q8", "q4")
POSITIONS = ("0", "31", "64")
WHAT = ("tokens", "kernels", "text")
TOLERANCE = 0.02
AGAIN = "measure again with: make bench-budgets"

Figures = dict[str, int]
"""Instructions by position, `0`, by kernel, `product q8 256x128 portable`, or by algorithm of a tokenizer, `unigram`."""
Table = dict[str, Figures]
"""By `BOARD COMPILER QUANT`, `BOARD COMPILER kernels` or `BOARD COMPILER text`."""

HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Written by `make bench-budgets`: instructions under QEMU at -O2, exact. By board, compiler and format: of one token of
# weights/stories-moe-3m (micro-moe where that does not fit) at a position; of each kernel by itself, its call included; and of
# colibri_tokenize for 496 characters of English text with 512 tokens, by algorithm.
# A build that differs by more than 2 % fails tests/bench/test_bench_budgets.py.
"""


def committed() -> Table:
    """The file as tables of figures."""
    with FILE.open("rb") as file:
        return {name: dict(figures) for name, figures in tomllib.load(file).items()}


def tokens(board: str, toolchain: str, quant: str) -> Table:
    """The figures of one token; nothing where neither model fits."""
    model = next((name for name in MODELS if board in _fitting(name, quant)), None)
    if model is None:
        return {}
    (row,) = _document(ROOT / "weights" / model, "-b", board, "--toolchain", toolchain, "-q", quant)["results"]
    counts = row["instructions_per_token"]
    return {f"{board} {row['compiler']} {quant}": {at: counts[at] for at in POSITIONS if at in counts}}


def kernels(board: str, toolchain: str) -> Table:
    """The figures of the kernels: products and what quantises for them at the largest matrix, and vector operators."""
    found = _document("--kernels", "-b", board, "--toolchain", toolchain)
    largest = max(row["rows"] * row["cols"] for row in found["kernels"] if row["op"] == "product")
    first = next(row for row in found["kernels"] if row["op"] == "product" and row["rows"] * row["cols"] == largest)
    shape = (first["rows"], first["cols"])
    return {
        f"{board} {found['compiler']} kernels": {
            _name(row): row["instructions"]
            for row in found["kernels"]
            if (row["rows"], row["cols"]) == shape or row["op"] not in ("product", "quantise")
            if row["op"] != "widen"  # one row a token
        }
    }


def text(board: str, toolchain: str, algorithms: Iterable[Algorithm] = ALGORITHMS) -> Table:
    """The figures of the tokenizer; nothing where the demo does not fit with it."""
    found: Table = {}
    for algorithm in algorithms if board in _fitting(MODELS[0], "q8") else ():
        with tempfile.TemporaryDirectory() as folder:
            compiler, n = instructions(board, toolchain, algorithm, Path(folder) / "packed")
        found.setdefault(f"{board} {compiler} text", {})[algorithm] = n
    return found


def differences(measured: Mapping[str, int], wanted: Mapping[str, int]) -> list[str]:
    """What is more than TOLERANCE off, new or gone; one sentence each."""
    found = []
    for name in sorted(measured.keys() | wanted.keys()):
        now, then = measured.get(name), wanted.get(name)
        if now is None or then is None:
            found.append(f"{name}: {'measured no more' if now is None else 'not in the file'}; {AGAIN}")
        elif abs(now - then) > TOLERANCE * then:
            verdict = "slower: find out why" if now > then else f"faster: write it down, {AGAIN}"
            found.append(f"{name}: {now:,} instructions, {100 * (now / then - 1):+.1f} % of {then:,}; {verdict}")
    return found


def text_of(table: Table) -> str:
    """The file, sorted, so that the same figures are the same bytes."""
    parts = [HEAD]
    for name in sorted(table):
        lines = [f"{key if key.isdecimal() else json.dumps(key)} = {n}" for key, n in table[name].items()]
        parts.append("\n".join([f'["{name}"]', *lines]) + "\n")
    return "\n".join(parts)


def _name(row: Mapping[str, Any]) -> str:
    group = f":{row['group']}" if row["group"] else ""
    return f"{row['op']} {row['dtype']}{group} {row['rows']}x{row['cols']} {row['impl']}"


def _fitting(model: str, quant: str) -> list[str]:
    try:
        return fitting_boards(ROOT / "weights" / model, NO_SETTINGS | {"quant": quant})
    except DoesNotFit:
        return []


def _document(*arguments: object) -> dict[str, Any]:
    result = call("bench", *arguments, "--json")
    if result.code != 0:
        raise RuntimeError(result.err)
    return dict(result.document)


def _measured(boards: Iterable[str], toolchains: Iterable[str], what: Iterable[str]) -> Iterable[Table]:
    for board in boards:
        for toolchain in toolchains:
            if "tokens" in what:
                yield from (tokens(board, toolchain, quant) for quant in QUANTS)
            if "kernels" in what:
                yield kernels(board, toolchain)
            if "text" in what:
                yield text(board, toolchain)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-budgets", description=__doc__)
    parser.add_argument("--board", action="append", choices=list_boards())
    parser.add_argument("--toolchain", action="append", choices=("gcc", "llvm"))
    parser.add_argument("--only", action="append", choices=WHAT)
    chosen = parser.parse_args()
    table = committed() if FILE.exists() else {}
    for part in _measured(chosen.board or list_boards(), chosen.toolchain or ("gcc", "llvm"), chosen.only or WHAT):
        for name, figures in part.items():
            news = differences(figures, table[name]) or ["within 2 %"] if name in table else ["new"]
            print("\n  ".join([name, *news]), flush=True)
        table |= part
        FILE.write_text(text_of(table), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
