# SPDX-License-Identifier: Apache-2.0
"""Canonical decompositions and combining classes, as the tokenizers package has them (Unicode Standard Annex 15)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Normalisation:
    """Hangul syllables, which follow a rule, are left out.

    classes         combining class of every mark
    decompositions  of characters that composition does not give back: whole
    pairs           of those that it does: the last step
    """

    classes: dict[int, int] = field(default_factory=dict)
    decompositions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    pairs: dict[int, tuple[int, int]] = field(default_factory=dict)


@cache
def normalisation() -> Normalisation:
    """The committed data."""
    found = Normalisation()
    for line in (Path(__file__).parent / "normalization.txt").read_text(encoding="ascii").splitlines():
        kind, *words = line.split()
        if kind == "M":
            found.classes[int(words[0], 16)] = int(words[1])
        elif kind == "D":
            found.decompositions[int(words[0], 16)] = tuple(int(w, 16) for w in words[1:])
        elif kind == "P":
            code, first, second = (int(w, 16) for w in words)
            found.pairs[code] = (first, second)
    return found
