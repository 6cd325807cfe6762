# SPDX-License-Identifier: Apache-2.0
"""Sizes and counts from docs/FORMAT.md 3 and docs/DESIGN.md 2, computed without the planner."""

from __future__ import annotations

from dataclasses import dataclass

from colibri.model import ModelConfig
from colibri.quantise import Policy

BITS = {"f32": 32, "bf16": 16, "f16": 16, "q8": 8, "q4": 4}


def up(n: int, to: int) -> int:
    return (n + to - 1) // to * to


@dataclass(frozen=True)
class Sizes:
    """Bytes of one matrix: what it says, what of it a product reads, and the macs of that product."""

    rows: int
    cols: int
    stored_rows: int
    row_bytes: int
    scales: int
    information: int

    @property
    def read(self) -> int:
        return self.stored_rows * self.row_bytes + self.scales

    @property
    def macs(self) -> int:
        return self.rows * self.cols


def sizes(config: ModelConfig, policy: Policy, kernels: str = "portable") -> dict[str, Sizes]:
    found = {}
    shapes = dict(config.tensor_shapes())
    shapes["rope.inv_freq"] = (len(config.layers[0].attention.rope.inv_freq),)
    for name, shape in shapes.items():
        rows, cols = (1, *shape) if len(shape) == 1 else shape
        fixed = "norm" in name or "router" in name or name == "rope.inv_freq"
        kind, _, group = ("f32" if fixed else str(policy.format_of(name))).partition(":")
        width = {"row": cols, "": 32 if kind == "q4" else cols}.get(group) or int(group)
        groups = -(-cols // width)
        scales = {"q8": 4 * rows * groups, "q4": rows * (4 + groups)}.get(kind, 0)
        information = rows * cols * BITS[kind] // 8 + scales
        stored_rows, row_bytes = rows, up(cols, 8) * BITS[kind] // 8
        if kernels == "armv7em" and kind in ("q8", "q4"):  # scales and multipliers are in the blocks
            segments = -(-cols // 512) if (kind, group) == ("q4", "row") else groups
            stored_rows, scales = up(rows, 4), 0
            row_bytes += 4 * groups if kind == "q8" else segments + 4
        if kernels == "mve" and kind in ("q8", "q4"):
            row_bytes = up(cols, 16) if kind == "q8" else up(cols, 32) // 2
        if kernels == "armv7m" and kind in ("q8", "q4"):
            stored_rows, scales = up(rows, 4 if kind == "q8" else 8), 0
            row_bytes += 4 * groups if kind == "q8" else -(-cols // 32) + 4
        found[name] = Sizes(rows, cols, stored_rows, row_bytes, scales, information)
    return found


def active(config: ModelConfig) -> dict[str, int]:
    """How often one token multiplies by each tensor: an expert's matrices as often as the average one of top_k runs."""
    times = {}
    for name in config.tensor_shapes():
        parts = name.split(".")
        if "experts" in parts:
            router = config.layers[int(parts[1])].ffn.router
            assert router is not None
            times[name] = router.top_k if parts[3] == "0" else 0
        else:
            times[name] = 0 if name == "embed.weight" and not config.tied_head else 1
    return times


def macs_per_token(config: ModelConfig, policy: Policy) -> int:
    found, times = sizes(config, policy), active(config)
    return sum(times[n] * found[n].macs for n in times if "norm" not in n)


def bytes_read_per_token(config: ModelConfig, policy: Policy, kernels: str) -> int:
    found, times = sizes(config, policy, kernels), active(config)
    embedding = found["embed.weight"]
    row = embedding.row_bytes + embedding.scales // embedding.rows
    inv_freq = up(4 * found["rope.inv_freq"].cols, 32)
    return row + inv_freq + sum(times[n] * found[n].read for n in times)


def part_of(name: str) -> str:
    words = (("norm", "norms"), ("inv_freq", "tables"), (".experts.", "experts"), (".ffn.", "dense"))
    words += ((".attn.", "attention"), (".router.", "router"), ("embed", "embedding"), ("head", "head"))
    return next(part for word, part in words if word in name)
