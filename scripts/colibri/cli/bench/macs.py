# SPDX-License-Identifier: Apache-2.0
"""Multiply-accumulates of a token by operator: the stages that it goes through beside the shapes of the matrices."""

from __future__ import annotations

from collections.abc import Sequence

from colibri.folder import Folder
from colibri.quantise import parse_format
from colibri_sim.qemu.frames import Walk

_PLACES = ("attn.{}", "{}", "experts.0.{}", "ffn.{}", "attn.kv_a")


def macs(folder: Folder, walk: Sequence[Walk], position: int) -> dict[str, int]:
    """MACs of one token at a position with its logits, by stage. Operators over vectors have none.

    Of a matrix: rows x columns, of a block's the first expert's; of attention: what the engine's geometry says.
    """
    shapes = {tensor["name"]: tensor["shape"] for tensor in folder.manifest["tensors"]}
    counts: dict[str, int] = {}
    for step in walk:
        n = step.attention_macs(position) or _of_matrix(shapes, step)
        if n:
            counts[step.stage] = counts.get(step.stage, 0) + n
    return counts


def attention_macs(walk: Sequence[Walk], position: int) -> int:
    """MACs of attention over the cache, of one token at a position."""
    return sum(step.attention_macs(position) for step in walk)


def _of_matrix(shapes: dict[str, list[int]], step: Walk) -> int:
    if step.stage in ("attention", "embed") or step.stage.endswith("norm"):
        return 0
    if step.stage == "head":
        names = ["head.weight", "embed.weight"]
    else:
        names = [
            f"layers.{step.layer}.{place.format(step.stage)}.weight"
            for place in _PLACES[: 5 if step.stage == "k" else 4]
        ]
    rows, cols = next((shapes[name] for name in names if name in shapes), (0, 0))
    return int(rows * cols)


def groups(folder: Folder) -> int | str | None:
    """The group of the integer formats: columns that share a scale; None where it is the row, a list where there are several."""
    formats = [parse_format(tensor["format"]) for tensor in folder.manifest["tensors"]]
    found = sorted({one.group for one in formats if one.is_integer and one.group})
    return (found[0] if len(found) == 1 else ",".join(map(str, found))) if found else None
