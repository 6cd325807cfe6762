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

    code_bytes    code and constants, without weights and without the model's tables, of a Mixtral or Llama
    static_bytes  statics, without state, logits, stack and the arrays that grow with the model (colibri.layout.statics)
    """

    code_bytes: int
    static_bytes: int

    def code_bytes_of(self, extra_axes: int) -> int:
        """The bound for a model with so many more axes (layout.uses.extra_axes): a twentieth more for each."""
        return self.code_bytes * (20 + extra_axes) // 20


def budget(board: str, compiler: str | None, app: str) -> Budget:
    """The bound for a board and a compiler.

    compiler  as `gcc-12.2`. `any` is for a version that was not measured, and for a level that was not (budget_key). None: not
              known yet; the widest of those measured
    """
    versions = _table().get(board, _table()["default"])
    if compiler in versions:
        chosen = [versions[compiler]]
    else:
        measured = [entry for key, entry in versions.items() if key != "any"]
        chosen = measured if compiler is None and measured else [versions["any"]]
    entries = [apps[app] for apps in chosen]
    return Budget(max(e["code_bytes"] for e in entries), max(e["static_bytes"] for e in entries))


def budget_key(compiler: str, opt: str) -> str:
    """The key of a compiler version: itself at the levels that are measured, -O2 and -Os; else one that has no entry."""
    return compiler if opt in ("2", "s") else f"{compiler} -O{opt}"


@cache
def _table() -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    with (data_path("linker") / "budgets.toml").open("rb") as file:
        return tomllib.load(file)
