# SPDX-License-Identifier: Apache-2.0
"""How results and errors reach the user: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from colibri.errors import ColibriError

SCHEMA_VERSION = 1


def document(values: dict[str, Any]) -> None:
    """Print the one JSON document of a command."""
    print(json.dumps({"schema_version": SCHEMA_VERSION, **values}, indent=1))


def line(values: dict[str, Any]) -> None:
    """Print one line of a JSON-lines stream."""
    print(json.dumps({"schema_version": SCHEMA_VERSION, **values}), flush=True)


def progress(text: str) -> None:
    """Say on stderr what is being done."""
    print(text, file=sys.stderr, flush=True)


def error(problem: ColibriError, *, as_json: bool) -> None:
    """Show an error: plain lines on stderr; with --json also the error document on stdout."""
    print(f"error: {problem}\nhint:  {problem.hint}", file=sys.stderr)
    if as_json:
        fields = ("code", "where", "expected", "got", "hint")
        _error_line({name: getattr(problem, name) for name in fields})


def bug(problem: Exception, *, as_json: bool) -> None:
    """Close the traceback of a bug of ours with what to do about it."""
    hint = "this is a bug of colibri; please report it with the traceback above and the command line"
    name, text = type(problem).__name__, str(problem)
    print(f"error: {name}: {text}\nhint:  {hint}", file=sys.stderr)
    if as_json:
        _error_line({"code": "bug", "where": name, "expected": "no exception", "got": text, "hint": hint})


def interrupted(signal_name: str, *, as_json: bool) -> None:
    """Nothing to say to the user who did it; a program that reads JSON still gets its document."""
    if as_json:
        hint = "nothing half-written was left behind; run it again"
        where, expected = "colibri", "to run to the end"
        _error_line({"code": "interrupted", "where": where, "expected": expected, "got": signal_name, "hint": hint})


def _error_line(fields: dict[str, str]) -> None:
    """One line, so that it can also end a stream of lines."""
    line({"error": fields})


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns aligned by width: numbers to the right, words to the left."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    right = [len(cells) > 1 and all(_numeric(row[i]) for row in cells[1:]) for i in range(len(header))]
    return "\n".join(
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in cells
    )


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _numeric(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").isdigit() or text == ""


def number(value: Any) -> float | str:
    """A float32 as JSON has it: the double of the same value, which reads back to the same bits; NaN and Inf as text."""
    as_float = float(value)
    return as_float if math.isfinite(as_float) else str(as_float)
