# SPDX-License-Identifier: Apache-2.0
"""What only the compiler knows, as committed bounds: linker/budgets.toml, by board, compiler version and application."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from colibri.data import data_path


@dataclass(frozen=True)
class Budget:
    """Upper bounds for one application on one board.

    code_bytes    code and constants, without weights and without the model's offset tables
    static_bytes  statics, without state, logits and stack
    """

    code_bytes: int
    static_bytes: int


def budget(board: str, compiler: str, app: str) -> Budget:
    """The bound for a board and a compiler such as `gcc-12.2`; the board's widest where that version has no entry yet."""
    versions = _table().get(board, {})
    chosen = [versions[compiler]] if compiler in versions else list(versions.values())
    entries = [apps[app] for apps in chosen if app in apps] or [_table()["default"]["any"][app]]
    return Budget(max(e["code_bytes"] for e in entries), max(e["static_bytes"] for e in entries))


@cache
def _table() -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    with (data_path("linker") / "budgets.toml").open("rb") as file:
        return tomllib.load(file)
