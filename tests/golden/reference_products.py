# SPDX-License-Identifier: Apache-2.0
"""The float64 simulation's stored tensors and products, with the one rounding that is a decision: that of quantised vectors.

Where a product quantises its vector, so does this. An element that lies within TIE of half-way between two integers may fall to
either side; there the simulation takes the golden model's side, and counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.model import ModelConfig
from colibri.quantise import Stored
from colibri_sim.golden import TraceName, TraceRecorder
from colibri_sim.golden.cache import KvFormat

F64 = npt.NDArray[np.float64]
Traced = npt.NDArray[Any] | None
"""The golden model's values of a vector that is about to be quantised, for the side of ties."""
TIE = 2e-3
"""In steps of the quantised vector: float32 and float64 disagree by about 127 * 1e-6 of one."""


@dataclass
class Products:
    """Stored tensors in float64.

    weights   the stored tensors; the simulation uses their exact values
    integer   False: never quantise a vector (dequantised weights, float activations)
    kv        format of the KV cache
    golden    a trace of the golden model with all values, for the side of ties; None: round to even
    flips     elements that took the golden model's side against float64's
    rounded   elements quantised
    """

    config: ModelConfig
    weights: Callable[[str], Stored]
    integer: bool = True
    kv: KvFormat = "f32"
    golden: TraceRecorder | None = None
    flips: int = 0
    rounded: int = 0

    def matrix(self, name: str) -> F64:
        """The values of a stored tensor, exactly: data times scales in float64."""
        stored = self.weights(name)
        if stored.scales is None:
            return stored.values().astype(np.float64)
        scales = stored.scales.astype(np.float64)
        if stored.multipliers is not None:
            scales = scales * stored.multipliers
        return stored.data * np.repeat(scales, stored.format.group or stored.cols, axis=1)[:, : stored.cols]

    def vector(self, name: str) -> F64:
        return self.matrix(name).reshape(-1)

    def product(self, name: str, x: F64, traced: Traced, rows: slice = slice(None)) -> F64:
        """x [T, n] times some rows of a matrix."""
        stored = self.weights(name)
        if self.integer and stored.format.is_integer:
            group = stored.format.group if stored.format.kind == "q8" else 0
            x = self.quantised(x, group or x.shape[1], traced)
        return x @ self.matrix(name)[rows].T

    def cached(self, x: F64, traced: Traced) -> F64:
        """Keys or values [T, heads, d] as the cache reads them back."""
        if self.kv == "f32":
            return x
        if self.kv == "f16":
            return self.halves(x, None if traced is None else traced.reshape(x.shape))
        flat = x.reshape(-1, x.shape[-1])
        return self.quantised(flat, x.shape[-1], None if traced is None else traced.reshape(flat.shape)).reshape(
            x.shape
        )

    def halves(self, x: F64, traced: Traced) -> F64:
        """x as it reads back from binary16."""
        out = x.astype(np.float16).astype(np.float64)
        self.rounded += out.size
        if traced is not None:
            theirs = traced.astype(np.float16).astype(np.float64)
            step = np.spacing(np.abs(x).astype(np.float16)).astype(np.float64)
            tie = (out != theirs) & (np.abs(x - theirs) <= (0.5 + TIE) * step)
            self.flips += int(tie.sum())
            out = np.where(tie, theirs, out)
        return out

    def traced(self, layer: int | None, tensor: str, slot: int | None = None, tokens: Any = None, n: int = 0) -> Traced:
        """The golden model's vectors of that name: of `tokens`, or of the first n."""
        if self.golden is None:
            return None
        name = TraceName(layer, tensor, slot)
        return np.stack([self.golden.values(int(t))[name] for t in (range(n) if tokens is None else tokens)])

    def quantised(self, x: F64, group: int, traced: Traced) -> F64:
        """x as it reads back from int8, a scale for each `group` elements of a row."""
        out = np.empty_like(x)
        for start in range(0, x.shape[1], group):
            part = slice(start, start + group)
            step = np.abs(x[:, part]).max(axis=1, keepdims=True) / 127
            steps = np.divide(x[:, part], step, out=np.zeros_like(x[:, part]), where=step > 0)
            q = np.rint(steps)
            if traced is not None:
                amax = np.abs(traced[:, part]).max(axis=1, keepdims=True)
                inverse = np.divide(np.float32(127), amax, out=np.zeros_like(amax), where=amax > 0)
                theirs = np.rint(traced[:, part] * inverse).astype(np.float64)
                tie = (q != theirs) & (np.abs(steps - theirs) <= 0.5 + TIE)
                self.flips += int(tie.sum())
                q = np.where(tie, theirs, q)
            self.rounded += q.size
            out[:, part] = q * step
        return out
