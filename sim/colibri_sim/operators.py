# SPDX-License-Identifier: Apache-2.0
"""Which operator executed how many instructions: a token's events beside the stages that it goes through (docs/DESIGN.md 3).

The engine has no hook for this. Execution enters a stage where it enters colibri_stage_run, and has left it when it is back in
the walk's own code, run_slice; the bench application says which stages follow each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from colibri.errors import NoVerdict
from colibri_sim.qemu.counter import Event
from colibri_sim.qemu.frames import Walk

__all__ = ["BEGIN", "END_OF_TOKEN", "WALK", "Token", "attribute", "walk_of"]

WALK = "walk"
"""What is outside every stage: the call, its checks, and the walk from stage to stage."""
OUTSIDE_LAYERS = ("embed", "final_norm", "head", WALK)

BEGIN, END_OF_TOKEN = "colibri_bench_begin", "colibri_bench_end"


@dataclass(frozen=True)
class Token:
    """Instructions of one token: in all, by operator, and by layer (without those that belong to none)."""

    instructions: int
    operators: dict[str, int]
    layers: tuple[int, ...]


def attribute(
    events: Sequence[Event], walk: Sequence[Walk], n_tokens: int, *, stage_run: str, run_slice: str
) -> list[Token]:
    """The instructions of each of `n_tokens`; the sum over the operators is the token's count.

    events  from colibri_sim.qemu.counter, with BEGIN, END_OF_TOKEN and `stage_run` as markers and `run_slice` as a range
    walk    the stages of one token, or of every token one after the other

    Raises NoVerdict where the tokens measured, or a token's stages, are not as many as announced.
    """
    begins = [i for i, (name, _) in enumerate(events) if name == BEGIN]
    ends = [i for i, (name, _) in enumerate(events) if name == END_OF_TOKEN]
    if len(begins) != n_tokens or len(ends) != n_tokens:
        raise _incomplete(f"{n_tokens} measured tokens", f"{len(begins)} begun, {len(ends)} ended")
    tokens = zip(begins, ends, strict=True)
    return [_token(events[b : e + 1], walk_of(walk, i), stage_run, run_slice) for i, (b, e) in enumerate(tokens)]


def walk_of(walk: Sequence[Walk], token: int) -> Sequence[Walk]:
    """The stages of a token, where the walk has them; otherwise those of all tokens."""
    starts = [i for i, step in enumerate(walk) if i == 0 or step.stage == "embed"]
    first = min(token, len(starts) - 1)
    return walk[starts[first] : [*starts, len(walk)][first + 1]]


def _token(events: Sequence[Event], walk: Sequence[Walk], stage_run: str, run_slice: str) -> Token:
    operators = dict.fromkeys([*(step.stage for step in walk), WALK], 0)
    layers = [0] * (1 + max(step.layer for step in walk))
    n_stages = sum(name == stage_run for name, _ in events)
    if n_stages != len(walk):
        raise _incomplete(f"a token of {len(walk)} stages", f"{n_stages}")
    steps = iter(walk)
    for (name, at), (following, until) in itertools.pairwise(events):
        if name != stage_run:
            operators[WALK] += until - at
            continue
        if following != run_slice:
            raise _incomplete("a stage that returns to the walk", f"{following} after {name}")
        step = next(steps)
        operators[step.stage] += until - at
        if step.stage not in OUTSIDE_LAYERS:
            layers[step.layer] += until - at
    return Token(events[-1][1] - events[0][1], operators, tuple(layers))


def _incomplete(expected: str, got: str) -> NoVerdict:
    return NoVerdict("the instructions by operator", expected=expected, got=got, hint="build it again")
