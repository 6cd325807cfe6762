# SPDX-License-Identifier: Apache-2.0
"""Experts as checkpoints store them: apart, or stacked into one tensor."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.errors import CheckpointError
from colibri.importers.bind import Index, Part, Sources
from colibri.model import ModelConfig
from colibri.tensors import block_tensors

# Names of gate, up and down: Mixtral's own, and those of the families after it.
_EXPERT_NAMES = (("w1", "w3", "w2"), ("gate_proj", "up_proj", "down_proj"))


def bind_experts(config: ModelConfig, n: int, module: str, sources: Sources) -> Iterator[Part]:
    """Bind the experts under `module` of layer n, in whichever layout the checkpoint has.

    apart    ``MODULE.J.w1.weight [width, H]``, w3 the same, ``w2 [H, width]``; or with the names of dense blocks
    stacked  ``MODULE.gate_up_proj [E, 2 width, H]``, gate rows first; ``MODULE.down_proj [E, H, width]``
    merged   ``MODULE.w1.weight [E, width, H]`` or ``[E, H, width]``, as its sizes say; w3 and w2 the same
    """
    h, ffn = config.hidden_size, config.layers[n].ffn
    assert ffn.router is not None
    if f"{module}.gate_up_proj" in sources:
        yield from bind_stacked(config, n, f"{module}.gate_up_proj", f"{module}.down_proj")
        return
    if f"{module}.w1.weight" in sources:
        yield from _bind_merged(config, n, module, sources)
        return
    own = next(
        (t for t in _EXPERT_NAMES if any(f"{module}.0.{name}.weight" in sources for name in t)), _EXPERT_NAMES[0]
    )
    gate, up, down = own
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


def bind_apart(config: ModelConfig, n: int, prefix: str, _sources: Sources) -> Iterator[Part]:
    """Bind the experts of layer n, if it has any, each tensor apart, whatever form they have: no gate, biases, own widths.

    ``PREFIX mlp.experts.J.up_proj.weight [width, H]``, and gate_proj and down_proj as well
    """
    ffn = config.layers[n].ffn
    for j in range(ffn.router.n_experts if ffn.router is not None else 0):
        for name, shape in block_tensors(f"experts.{j}", ffn, ffn.width_of(j), config.hidden_size):
            part, leaf = name.split(".")[-2:]
            yield Part(f"layers.{n}.{name}", f"{prefix}mlp.experts.{j}.{part}_proj.{leaf}", shape)


def halves(width: int, *, interleaved: bool = False) -> tuple[slice, slice]:
    """Return where gate and up are along an axis of ``2 * width``."""
    if interleaved:
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, width), slice(width, 2 * width)


def _bind_merged(config: ModelConfig, n: int, module: str, sources: Sources) -> Iterator[Part]:
    h, ffn = config.hidden_size, config.layers[n].ffn
    assert ffn.router is not None
    for name, source, shape in (
        ("gate", "w1", (ffn.width, h)),
        ("up", "w3", (ffn.width, h)),
        ("down", "w2", (h, ffn.width)),
    ):
        whole = f"{module}.{source}.weight"
        transposed = stacked_is_transposed(whole, sources, shape)
        stored = shape[::-1] if transposed else shape
        for j in range(ffn.router.n_experts):
            target = f"layers.{n}.experts.{j}.{name}.weight"
            yield Part(target, whole, (ffn.router.n_experts, *stored), (j,), transposed)


def stacked_is_transposed(name: str, sources: Sources, shape: tuple[int, int]) -> bool:
    """Whether a stack of matrices holds each of `shape` with its axes exchanged, by its sizes.

    Raises CheckpointError where they do not tell.
    """
    source = sources.get(name)
    rows, cols = shape
    if rows == cols and source is not None:
        raise CheckpointError(
            source.where,
            expected=f"matrices whose orientation their sizes tell, or one that is stated for [{rows}, {cols}]",
            got="as many rows as columns: either orientation fits",
            hint="describe the layout in a family file, with transposed = true or false (docs/FAMILIES.md)",
        )
    return source is not None and source.shape[1:] == (cols, rows)
