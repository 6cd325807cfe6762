# SPDX-License-Identifier: Apache-2.0
"""Feed-forward blocks as checkpoints store them: one dense block, or experts apart or stacked."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from colibri.importers.bind import Part
from colibri.model import ModelConfig

# Names of gate, up and down: Mixtral's own, and those of the families after it.
_EXPERT_NAMES = (("w1", "w3", "w2"), ("gate_proj", "up_proj", "down_proj"))


def bind_dense(config: ModelConfig, n: int, _names: Collection[str]) -> Iterator[Part]:
    """``mlp.gate_proj [width, H]``, ``mlp.up_proj [width, H]``, ``mlp.down_proj [H, width]``."""
    h, width = config.hidden_size, config.layers[n].ffn.width
    target, source = f"layers.{n}.ffn.", f"model.layers.{n}.mlp."
    yield Part(target + "gate.weight", source + "gate_proj.weight", (width, h))
    yield Part(target + "up.weight", source + "up_proj.weight", (width, h))
    yield Part(target + "down.weight", source + "down_proj.weight", (h, width))


def bind_experts(config: ModelConfig, n: int, module: str, names: Collection[str]) -> Iterator[Part]:
    """Bind the experts under `module` of layer n, in whichever layout the checkpoint has.

    apart    ``experts.J.w1.weight [width, H]``, w3 the same, ``w2 [H, width]``; or with the names of dense blocks
    stacked  ``experts.gate_up_proj [E, 2 width, H]``, gate rows first; ``experts.down_proj [E, H, width]``
    """
    h, ffn = config.hidden_size, config.layers[n].ffn
    assert ffn.router is not None
    n_experts, width = ffn.router.n_experts, ffn.width
    source = f"model.layers.{n}.{module}.experts."
    is_stacked = source + "gate_up_proj" in names
    gate, up, down = _EXPERT_NAMES[source + "0.gate_proj.weight" in names]
    for j in range(n_experts):
        target = f"layers.{n}.experts.{j}."
        if is_stacked:
            both = (source + "gate_up_proj", (n_experts, 2 * width, h))
            yield Part(target + "gate.weight", *both, (j, slice(0, width)))
            yield Part(target + "up.weight", *both, (j, slice(width, 2 * width)))
            yield Part(target + "down.weight", source + "down_proj", (n_experts, h, width), (j,))
        else:
            yield Part(target + "gate.weight", f"{source}{j}.{gate}.weight", (width, h))
            yield Part(target + "up.weight", f"{source}{j}.{up}.weight", (width, h))
            yield Part(target + "down.weight", f"{source}{j}.{down}.weight", (h, width))
