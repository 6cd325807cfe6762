# SPDX-License-Identifier: Apache-2.0
"""Experts as checkpoints store them: apart, or stacked into one tensor."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from colibri.importers.bind import Index, Part
from colibri.model import ModelConfig

# Names of gate, up and down: Mixtral's own, and those of the families after it.
_EXPERT_NAMES = (("w1", "w3", "w2"), ("gate_proj", "up_proj", "down_proj"))


def bind_experts(config: ModelConfig, n: int, module: str, names: Collection[str]) -> Iterator[Part]:
    """Bind the experts under `module` of layer n, in whichever layout the checkpoint has.

    apart    ``MODULE.J.w1.weight [width, H]``, w3 the same, ``w2 [H, width]``; or with the names of dense blocks
    stacked  ``MODULE.gate_up_proj [E, 2 width, H]``, gate rows first; ``MODULE.down_proj [E, H, width]``
    """
    h, ffn = config.hidden_size, config.layers[n].ffn
    assert ffn.router is not None
    if f"{module}.gate_up_proj" in names:
        yield from bind_stacked(config, n, f"{module}.gate_up_proj", f"{module}.down_proj")
        return
    gate, up, down = _EXPERT_NAMES[f"{module}.0.gate_proj.weight" in names]
    for j in range(ffn.router.n_experts):
        target = f"layers.{n}.experts.{j}."
        yield Part(target + "gate.weight", f"{module}.{j}.{gate}.weight", (ffn.width, h))
        yield Part(target + "up.weight", f"{module}.{j}.{up}.weight", (ffn.width, h))
        yield Part(target + "down.weight", f"{module}.{j}.{down}.weight", (h, ffn.width))


def bind_stacked(
    config: ModelConfig,
    n: int,
    gate_up: str,
    down: str,
    *,
    transposed: bool = False,
    interleaved: bool = False,
) -> Iterator[Part]:
    """Bind the experts of layer n from two tensors, ``gate_up [E, 2 width, H]`` and ``down [E, H, width]``.

    transposed   they are ``[E, H, 2 width]`` and ``[E, width, H]``
    interleaved  gate and up alternate; otherwise gate is the first half
    """
    h, ffn = config.hidden_size, config.layers[n].ffn
    assert ffn.router is not None
    n_experts, width = ffn.router.n_experts, ffn.width
    both = (n_experts, h, 2 * width) if transposed else (n_experts, 2 * width, h)
    out = (n_experts, width, h) if transposed else (n_experts, h, width)
    for j in range(n_experts):
        target = f"layers.{n}.experts.{j}."
        for name, rows in zip(("gate", "up"), halves(width, interleaved=interleaved), strict=True):
            index: Index = (j, slice(None), rows) if transposed else (j, rows)
            yield Part(f"{target}{name}.weight", gate_up, both, index, transposed)
        yield Part(target + "down.weight", down, out, (j,), transposed)


def halves(width: int, *, interleaved: bool = False) -> tuple[slice, slice]:
    """Return where gate and up are along an axis of ``2 * width``."""
    if interleaved:
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, width), slice(width, 2 * width)
