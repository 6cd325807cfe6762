# SPDX-License-Identifier: Apache-2.0
"""Choosing the next token (docs/NUMERICS.md section 8), bit for bit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from colibri.numerics import PCG32_INCREMENT, PCG32_MULTIPLIER

from .fma import F32Array
from .functions import exp_clamped, snap
from .model import GoldenModel

_U64 = (1 << 64) - 1
_U32 = (1 << 32) - 1


class Pcg32:
    """O'Neill's PCG XSH RR 64/32; increment (odd) names the stream."""

    def __init__(self, seed: int, increment: int = PCG32_INCREMENT) -> None:
        self._increment = increment
        self.state = 0
        self.next()
        self.state = (self.state + seed) & _U64
        self.next()

    def next(self) -> int:
        """The next 32 random bits."""
        old = self.state
        self.state = (old * PCG32_MULTIPLIER + self._increment) & _U64
        x = (((old >> 18) ^ old) >> 27) & _U32
        rot = old >> 59
        return ((x >> rot) | (x << (-rot & 31))) & _U32


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    temperature  0: the largest logit; otherwise 2**-7 .. 2**7
    top_k        only the k likeliest; 0: all
    top_p        only the likeliest that together reach this probability; 1: all
    seed         64 bits
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature != 0 and not 2.0**-7 <= self.temperature <= 2.0**7:
            raise ValueError(f"temperature is 0 or from 2**-7 to 2**7, not {self.temperature}")
        if self.top_k < 0 or not 0 < np.float32(self.top_p) <= 1 or not 0 <= self.seed <= _U64:
            raise ValueError(f"top_k >= 0, 0 < top_p <= 1 as float32, seed of 64 bits: {self}")


def sample(logits: F32Array, temperature: float, top_k: int, top_p: float, rng: Pcg32) -> int:
    """The id drawn from logits [V]; rng advances by one draw, or not at all with temperature 0."""
    if temperature == 0:
        return int(np.argmax(logits))
    inverse = np.float32(1.0) / np.float32(temperature)
    e = exp_clamped(snap(snap(logits - logits.max()) * inverse))
    limit_k, limit_p = 0 < top_k < len(e), np.float32(top_p) < np.float32(1.0)
    candidates = np.argsort(-e, kind="stable") if limit_k or limit_p else np.arange(len(e))
    if limit_k:
        candidates = candidates[:top_k]
    total = running_sums(e[candidates] if limit_k else e)[-1]
    if limit_p:
        running = running_sums(e[candidates])
        enough = np.flatnonzero(running >= np.float32(top_p) * total)
        count = int(enough[0]) + 1 if enough.size else len(candidates)
        candidates, total = candidates[:count], running[count - 1]
    u = np.float32(rng.next() >> 8) * np.float32(2.0**-24)
    exceeds = np.flatnonzero(running_sums(e[candidates]) > u * total)
    if exceeds.size:
        return int(candidates[exceeds[0]])
    return int(candidates[np.flatnonzero(e[candidates] > 0)[-1]])


def running_sums(e: F32Array) -> F32Array:
    """Partial sums of e [n] from +0.0 in rising order, each addition rounded to float32."""
    return np.add.accumulate(e, dtype=np.float32)


def generate(
    model: GoldenModel, ids: Sequence[int], n: int, sampling: Sampling, eos: Collection[int] = ()
) -> Iterator[int]:
    """Append ids, then yield up to n sampled ids; one in eos is yielded and is the last.

    Ends early where the context is full: the last id yielded then needs no place in it. Raises what forward raises.
    """
    rng = Pcg32(sampling.seed)
    feed = list(ids)
    for count in range(n):
        logits = model.forward(feed, last_only=True).logits[-1]
        chosen = sample(logits, sampling.temperature, sampling.top_k, sampling.top_p, rng)
        yield chosen
        if chosen in eos or count + 1 == n or model.position == model.config.max_seq:
            return
        feed = [chosen]
