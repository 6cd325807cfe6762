# SPDX-License-Identifier: Apache-2.0
"""Multiply-accumulates of a token by operator, from the constants that the engine is compiled against."""

from __future__ import annotations

from typing import Any


def macs(constants: dict[str, Any], position: int) -> dict[str, int]:
    """MACs of one token at a position with its logits, by stage. Operators over vectors have none.

    Of a matrix: rows x columns; of attention: 2 for each element of each query head and each position it sees.
    """
    layers, experts = constants["N_LAYERS"], constants["N_EXPERTS"]
    blocks = layers * max(constants["TOP_K"], 1)

    def of(name: str) -> int:
        rows, cols = constants[f"MATRIX_{name.upper()}"][:2]
        return int(rows * cols)

    seen = min(position + 1, constants["WINDOW"] or position + 1)
    counts = {name: layers * of(name) for name in ("q", "k", "v")}
    counts["attention"] = 2 * layers * constants["N_HEADS"] * constants["HEAD_DIM"] * seen
    counts["o"] = layers * of("o")
    if experts:
        counts["router"] = layers * experts * constants["HIDDEN_SIZE"]
    counts |= {name: blocks * of(name) for name in ("gate", "up", "down")}
    return counts | {"head": of("head")}


def groups(constants: dict[str, Any]) -> int | str | None:
    """The group of the integer formats: columns that share a scale; None where it is the row, a list where there are several."""
    quantised = 3  # DTYPE_IDS: q8 and q4
    matrices = [value for name, value in constants.items() if name.startswith("MATRIX_")]
    found = sorted({group for _, _, dtype, group, *_ in matrices if dtype >= quantised and group})
    return (found[0] if len(found) == 1 else ",".join(map(str, found))) if found else None
