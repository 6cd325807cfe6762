# SPDX-License-Identifier: Apache-2.0
"""Gated short convolution: docs/NUMERICS.md section 7.6."""

from __future__ import annotations

import numpy as np

from colibri.axes import Convolution

from . import functions as f
from .fma import F32Array, fma
from .operators import Call, Operators


class ConvolutionOperators(Operators):
    """Vectors have H elements, positions before the first are zeros: fma(w, 0, a) = a."""

    def convolution(self, call: Call, c: Convolution, n: F32Array) -> F32Array:
        """The whole mixer: n [T, H] to y [T, H]."""
        conv = call.name("conv")
        bcu = self.emit(call, "conv_in", self.linear(f"{conv}.in", n, bias=c.bias), ranged=True)
        before, after, u = np.split(bcu, 3, axis=-1)
        g = self.check(call, "conv", f.snap(before * u))
        assert call.layer is not None
        self._cache.append(call.layer, int(call.positions[0]), g[:, None])
        (gated,) = self._cache.read(call.layer, int(call.positions[-1]) + 1)
        a = self.convolve(self.stored(f"{conv}.taps.weight").values(), gated[:, 0], call)
        if c.bias:
            a = self.add_bias(f"{conv}.taps.bias", a)
        with np.errstate(all="ignore"):
            h = self.emit(call, "conv", f.snap(after * a), ranged=True)
        return self.linear(f"{conv}.out", h, bias=c.bias)

    def convolve(self, taps: F32Array, g: F32Array, call: Call) -> F32Array:
        """taps [H, K], g [P, H] of all positions so far; of each token [T, H]. The last tap is the token itself."""
        k = taps.shape[1]
        padded = np.concatenate([np.zeros((k - 1, g.shape[1]), dtype=np.float32), g])
        a = np.zeros((len(call.positions), g.shape[1]), dtype=np.float32)
        for j in range(k):
            a = fma(taps[:, j], padded[call.positions + j], a)
        return f.snap(a)
