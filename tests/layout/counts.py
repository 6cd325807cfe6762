# SPDX-License-Identifier: Apache-2.0
"""Sizes and counts from docs/FORMAT.md 3 and docs/DESIGN.md 2, computed without the planner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    ropes = {(m.rope.inv_freq, m.rope.factor) for m in mixers(config) if getattr(m, "rope", None) is not None}
    shapes["rope.inv_freq"] = (sum(len(inv_freq) for inv_freq, _ in ropes),)
    if any(factor != 1 for _, factor in ropes):
        shapes["rope.factor"] = shapes["rope.inv_freq"]
    for name, shape in shapes.items():
        rows, cols = (1, *shape) if len(shape) == 1 else shape
        fixed = len(shape) == 1 or any(word in name for word in ("router", "shared_gate", "shared_mix", "taps"))
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


def mixers(config: ModelConfig) -> list[Any]:
    return [layer.mixer for layer in config.layers]


def active(config: ModelConfig) -> dict[str, int]:
    """How often one token reads each tensor: an expert's as often as the average one of top_k runs, all being equally large."""
    times = {}
    for name in config.tensor_shapes():
        parts = name.split(".")
        if "experts" in parts:
            layer = config.layers[int(parts[1])]
            router = layer.mixer.router if parts[2] == "attn" else layer.ffn.router
            times[name] = router.top_k if parts[parts.index("experts") + 1] == "0" else 0
        else:
            times[name] = 0 if name == "embed.weight" and not config.tied_head else 1
    return times


def macs_per_token(config: ModelConfig, policy: Policy) -> int:
    found, times = sizes(config, policy), active(config)
    return sum(times[n] * found[n].macs for n in times if n.endswith(".weight") and "norm" not in n)


def bytes_read_per_token(config: ModelConfig, policy: Policy, kernels: str) -> int:
    found, times = sizes(config, policy, kernels), active(config)
    embedding = found["embed.weight"]
    row = embedding.row_bytes + embedding.scales // embedding.rows
    tables = sum(up(4 * size.cols, 32) for name, size in found.items() if name.startswith("rope."))
    return row + tables + sum(times[n] * found[n].read for n in times)


def part_of(name: str) -> str:
    words = (
        ("norm", "norms"),
        ("rope.", "tables"),
        (".router.", "router"),
        (".attn.", "attention"),
        (".conv.", "attention"),
    )
    words += ((".experts.", "experts"), (".ffn.bias", "experts"), (".shared", "shared"), (".ffn.", "dense"))
    words += (("embed", "embedding"), ("head", "head"))
    return next(part for word, part in words if word in name)


def n_blocks(config: ModelConfig) -> int:
    """Entries of the image's directory: one a block of a feed-forward or of a mixture of attention."""
    n = 0
    for layer in config.layers:
        routers = [layer.ffn.router, getattr(layer.mixer, "router", None)]
        n += sum(router.n_experts for router in routers if router is not None)
        n += layer.ffn.router is None or layer.ffn.shared is not None
    return n


def cached_bytes(config: ModelConfig, kv: str) -> int:
    """Keys and values of grouped-query attention, the one key of latent attention, a convolution's float32 input."""
    total = 0
    for mixer in mixers(config):
        if hasattr(mixer, "taps"):
            total += 4 * config.hidden_size
            continue
        latent = hasattr(mixer, "kv_rank")
        heads = 1 if latent else 2 * mixer.n_kv_heads
        elements = mixer.kv_rank + mixer.rope_dim if latent else mixer.head_dim
        total += heads * {"f32": 4 * elements, "f16": 2 * elements, "q8": elements + 4}[kv]
    return total * config.max_seq
