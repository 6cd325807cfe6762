# SPDX-License-Identifier: Apache-2.0
"""Untrusted names and values as they appear in messages."""

from __future__ import annotations

from pathlib import Path

_MAX_CHARS = 120


def quoted(name: str) -> str:
    """Return a name from a file in quotes: one line, no control characters, cut short."""
    shown = name if len(name) <= _MAX_CHARS else name[: _MAX_CHARS - 3] + "..."
    return "'" + _one_line(shown) + "'"


def place(path: Path, inside: str = "") -> str:
    """Return a path as messages show it, whole, and after a colon what is meant inside that file."""
    return _one_line(str(path)) + (f": {inside}" if inside else "")


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def described(value: object) -> str:
    """Return a JSON value as a message shows it: ``the string '64'``, ``true``, ``a list``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return f"the string {quoted(value)}"
    return "a list" if isinstance(value, list) else "an object"


def shape_text(shape: tuple[int, ...]) -> str:
    """Return ``[4, 64]``, cut short."""
    dims = [str(n) for n in shape[:8]] + (["..."] if len(shape) > 8 else [])
    return "[" + ", ".join(dims) + "]"
