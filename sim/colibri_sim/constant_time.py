# SPDX-License-Identifier: Apache-2.0
"""Does what a step executes depend on the position alone (docs/NUMERICS.md 10)? The traces of many prompts are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from colibri.errors import NoVerdict
from colibri_sim.operators import walk_of
from colibri_sim.qemu.frames import Walk
from colibri_sim.qemu.tracer import Window

__all__ = ["Difference", "Position", "Timing", "compare", "random_prompts"]


@dataclass(frozen=True)
class Position:
    """What the prompts did at one position: how many different traces there were, and the fewest and most instructions."""

    code_traces: int
    data_traces: int
    fewest: int
    most: int


@dataclass(frozen=True)
class Difference:
    """The first place where a prompt parts from prompt 0: the stage, or the walk behind it, that did something else."""

    position: int
    prompt: int
    stage: str
    layer: int
    what: Literal["instructions", "addresses"]


@dataclass(frozen=True)
class Timing:
    """The verdict. It holds where at every position all prompts have one trace of instructions and one of addresses."""

    positions: tuple[Position, ...]
    first_difference: Difference | None

    @property
    def holds(self) -> bool:
        """Whether a step depends on the position alone."""
        return self.first_difference is None


def random_prompts(vocab_size: int, n_prompts: int, n_positions: int) -> list[list[int]]:
    """Prompts of random token ids, the same each time."""
    drawn = np.random.default_rng(1).integers(0, vocab_size, (n_prompts, n_positions))
    return [[int(token) for token in row] for row in drawn]


def compare(prompts: Sequence[Sequence[Window]], walk: Sequence[Walk]) -> Timing:
    """Compare the windows of each position over all prompts.

    prompts  one window for each position of each prompt
    walk     the stages of one token, or of every token of the first prompt and what follows

    Raises NoVerdict where no address differs, reduced or not: then the prompts showed nothing.
    """
    columns = list(zip(*prompts, strict=True))
    if any(len({window.raw for window in column}) < 2 for column in columns):
        raise NoVerdict(
            "constant time",
            expected="prompts that read different rows of the embedding",
            got="the same addresses for every prompt",
            hint="give the model more than one token, or more prompts",
        )
    return Timing(
        tuple(_position(column) for column in columns),
        next(
            (
                _difference(position, prompt, column[0], window, walk_of(walk, position))
                for position, column in enumerate(columns)
                for prompt, window in enumerate(column)
                if (window.code, window.data) != (column[0].code, column[0].data)
            ),
            None,
        ),
    )


def _position(column: Sequence[Window]) -> Position:
    counts = [window.instructions for window in column]
    return Position(
        len({window.code for window in column}), len({window.data for window in column}), min(counts), max(counts)
    )


def _difference(position: int, prompt: int, first: Window, other: Window, walk: Sequence[Walk]) -> Difference:
    """The stage before the first one whose begin was reached in another way; the last, where only the end differs."""
    both = zip(first.stages, other.stages, strict=False)
    late = next((i for i, (a, b) in enumerate(both) if a != b), len(walk))
    code_differs = first.code != other.code if late == len(walk) else first.stages[late][0] != other.stages[late][0]
    step = walk[max(late - 1, 0)]
    return Difference(position, prompt, step.stage, step.layer, "instructions" if code_differs else "addresses")
