# SPDX-License-Identifier: Apache-2.0
"""Multiply-accumulates of a token by operator, from the plan of a packed folder."""

from __future__ import annotations

from typing import Any

from colibri.folder import Folder
from colibri.quantise import parse_format


def macs(plan: dict[str, Any], position: int) -> dict[str, int]:
    """MACs of one token at a position with its logits, by stage. Operators over vectors have none."""
    return {**plan["operator_macs"], "attention": attention_macs(plan, position)}


def attention_macs(plan: dict[str, Any], position: int) -> int:
    """MACs of attention over the cache: for each position seen, its scores and its share of the output."""
    return sum(a_position * _seen(position, window, chunk) for a_position, window, chunk in plan["attention_macs"])


SOURCE_TOKENS = 32
"""Of the source behind which the tokens of an encoder's decoder are measured, where so many fit."""


def _seen(position: int, window: int, chunk: int) -> int:
    if window < 0:  # cross-attention, over a source of at most so many
        return min(-window, SOURCE_TOKENS)
    if window:
        return min(position + 1, window)
    return position % chunk + 1 if chunk else position + 1


def groups(folder: Folder) -> int | str | None:
    """The group of the integer formats: columns that share a scale; None where it is the row, a list where there are several."""
    formats = [parse_format(tensor["format"]) for tensor in folder.manifest["tensors"]]
    found = sorted({one.group for one in formats if one.is_integer and one.group})
    return (found[0] if len(found) == 1 else ",".join(map(str, found))) if found else None
