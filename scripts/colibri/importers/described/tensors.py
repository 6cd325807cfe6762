# SPDX-License-Identifier: Apache-2.0
"""Where the tensors are: patterns of names on the left, canonical names (colibri.tensors) on the right.

    "tok.weight" = "embed.weight"
    "blocks.{n}.qkv.weight" = ["layers.{n}.attn.q.weight", "layers.{n}.attn.k.weight", "layers.{n}.attn.v.weight"]
    "blocks.{n}.moe.{e}.down" = { to = "layers.{n}.experts.{e}.down.weight", transposed = true }
    "blocks.{n}.moe.up" = "layers.{n}.experts.{e}.up.weight"

{n} is a layer, {e} an expert. A list divides the source's rows among its targets, one after another, or in turn where
`interleaved` is true. A source without {e} whose target has it holds all experts, along its first axis. `transposed`: the
source has the two axes of a matrix exchanged; for experts in one tensor its sizes tell, where they can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from colibri.importers.bind import Index, Part, Sources
from colibri.importers.described.table import error
from colibri.importers.families.blocks import stacked_is_transposed
from colibri.importers.text import described, quoted
from colibri.model import ModelConfig

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Rule:
    """One line of [tensors].

    transposed  None: the sizes tell, where experts share a tensor; otherwise as they are
    """

    where: str
    source: str
    targets: tuple[str, ...]
    transposed: bool | None = None
    interleaved: bool = False

    @property
    def is_stacked(self) -> bool:
        """Whether one source holds all experts."""
        return "{e}" in self.targets[0] and "{e}" not in self.source


def read_rules(table: object, where: str) -> tuple[Rule, ...]:
    """Return the lines of [tensors]; raises CheckpointError naming the line."""
    if not isinstance(table, Mapping) or not table:
        raise error(where, "a table of tensor names", described(table) if table is not None else "no such table")
    return tuple(_rule(str(source), value, f"{where}.{quoted(str(source))}") for source, value in table.items())


def _rule(source: str, value: object, where: str) -> Rule:
    options = value if isinstance(value, Mapping) else {"to": value}
    for key in options:
        if key not in ("to", "transposed", "interleaved"):
            raise error(f"{where}.{key}", "to, transposed or interleaved", "an unknown key")
    to = options.get("to")
    targets = [to] if isinstance(to, str) else to
    if not isinstance(targets, list) or not targets or not all(isinstance(t, str) for t in targets):
        raise error(where, "the canonical name of a tensor, or a list of them", described(to))
    flags: dict[str, Any] = {key: options[key] for key in ("transposed", "interleaved") if key in options}
    for key, flag in flags.items():
        if not isinstance(flag, bool):
            raise error(f"{where}.{key}", "true or false", described(flag))
    if len({("{n}" in t, "{e}" in t) for t in targets}) != 1 or ("{n}" in source) != ("{n}" in targets[0]):
        raise error(where, "{n} on both sides and {e} in every target, or in none", quoted(source))
    return Rule(where, source, tuple(targets), **flags)


def bind_rules(config: ModelConfig, rules: tuple[Rule, ...], sources: Sources) -> Iterator[Part]:
    """Yield the parts of every rule, for every layer and expert that the model has."""
    shapes = config.tensor_shapes()
    bound: dict[str, str] = {}
    for rule in rules:
        for part in _parts(config, rule, shapes, sources):
            if part.target in bound:
                raise error(rule.where, f"{quoted(part.target)} once", f"it from {quoted(bound[part.target])} too")
            bound[part.target] = part.source
            yield part
    missing = [name for name in shapes if name not in bound]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise error("[tensors]", f"a line for {quoted(missing[0])} {list(shapes[missing[0]])}", f"none{more}")


def _parts(config: ModelConfig, rule: Rule, shapes: Shapes, sources: Sources) -> Iterator[Part]:
    layers = range(len(config.layers)) if "{n}" in rule.source else range(1)
    for n in layers:
        router = config.layers[n].ffn.router
        experts = range(router.n_experts) if router is not None and "{e}" in rule.targets[0] else range(1)
        for e in experts:
            targets = [t.replace("{n}", str(n)).replace("{e}", str(e)) for t in rule.targets]
            source = rule.source.replace("{n}", str(n)).replace("{e}", str(e))
            there = [t for t in targets if t in shapes]
            if not there and "{n}" in rule.source and source not in sources:
                continue  # a layer of another kind
            if len(there) < len(targets):
                lacking = next(t for t in targets if t not in shapes)
                raise error(rule.where, "canonical names of tensors that the axes have", quoted(lacking))
            yield from _divided(rule, source, [(t, shapes[t]) for t in targets], e, len(experts), sources)


def _divided(
    rule: Rule, source: str, targets: list[tuple[str, tuple[int, ...]]], e: int, n_experts: int, sources: Sources
) -> Iterator[Part]:
    tails = {shape[1:] for _, shape in targets}
    counts = [shape[0] for _, shape in targets]
    if len(tails) != 1 or (rule.interleaved and len(set(counts)) != 1):
        raise error(rule.where, "targets that are rows of one tensor", ", ".join(str(list(s)) for _, s in targets))
    whole = (sum(counts), *tails.pop())
    transposed = bool(rule.transposed)
    if len(whole) == 2 and rule.is_stacked and rule.transposed is None:
        transposed = stacked_is_transposed(source, sources, (whole[0], whole[1]))
    transposed = transposed and len(whole) == 2
    stored = whole[::-1] if transposed else whole
    at = 0
    for i, ((target, _), n_rows) in enumerate(zip(targets, counts, strict=True)):
        rows = slice(i, None, len(targets)) if rule.interleaved else slice(at, at + n_rows)
        at += n_rows
        index: Index = (slice(None), rows) if transposed else (rows,)
        if rule.is_stacked:
            yield Part(target, source, (n_experts, *stored), (e, *index), transposed)
        else:
            yield Part(target, source, stored, index, transposed)
