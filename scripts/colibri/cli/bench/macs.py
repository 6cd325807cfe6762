# SPDX-License-Identifier: Apache-2.0
"""Multiply-accumulates of a token by operator, from the plan of a packed folder."""

from __future__ import annotations

from typing import Any


def macs(plan: dict[str, Any], position: int) -> dict[str, int]:
    """MACs of one token at a position with its logits, by stage. Operators over vectors have none.

    Of a matrix: rows x columns; of attention: for each position seen, its scores and its share of the output.
    """
    attention = sum(
        per_position * _seen(position, window, chunk) for per_position, window, chunk in plan["attention_macs"]
    )
    return {**plan["operator_macs"], "attention": attention}


def _seen(position: int, window: int, chunk: int) -> int:
    if window:
        return min(position + 1, window)
    return position % chunk + 1 if chunk else position + 1


def groups(constants: dict[str, Any]) -> int | str | None:
    """The group of the integer formats: columns that share a scale; None where it is the row, a list where there are several."""
    quantised = 3  # DTYPE_IDS: q8 and q4
    found = sorted({group for _, _, dtype, group, *_ in constants["MATRICES"] if dtype >= quantised and group})
    return (found[0] if len(found) == 1 else ",".join(map(str, found))) if found else None
