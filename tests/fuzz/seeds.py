# SPDX-License-Identifier: Apache-2.0
"""Where the targets begin: tests/fuzz/seeds/TARGET.txt, an input in hexadecimal a line. An input that once failed stays there."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent / "seeds"
MAX_BYTES = 6000
_DRAWN = 100


def read(target: str) -> list[bytes]:
    """The committed inputs, and as many drawn ones as make a fresh target meet every decision."""
    lines = (FOLDER / f"{target}.txt").read_text().split() if (FOLDER / f"{target}.txt").exists() else []
    rng = random.Random(target)
    return [bytes.fromhex(line) for line in lines] + [_drawn(rng) for _ in range(_DRAWN)]


def write(target: str, learned: Sequence[bytes]) -> None:
    """Keep what was committed, and of what was learned the shortest inputs, up to MAX_BYTES."""
    path = FOLDER / f"{target}.txt"
    lines = path.read_text().split() if path.exists() else []
    for one in sorted(learned, key=lambda data: (len(data), data)):
        if one and one.hex() not in lines and sum(map(len, lines)) + 2 * len(one) < MAX_BYTES:
            lines.append(one.hex())
    path.write_text("".join(f"{line}\n" for line in lines))


def _drawn(rng: random.Random) -> bytes:
    """Small numbers mostly: they are the decisions that lead far."""
    return bytes(
        rng.choice((0, 0, 1, 2, 3, 255, rng.randrange(16), rng.randrange(256))) for _ in range(rng.randrange(4, 200))
    )
