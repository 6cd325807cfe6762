# SPDX-License-Identifier: Apache-2.0
"""What the operators of docs/NUMERICS.md section 7 share: stored tensors, products, norms, the exits of finished vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from colibri.axes import Norm
from colibri.model import ModelConfig
from colibri.numerics import RANGE_BITS
from colibri.quantise import Stored

from . import functions as f
from . import vectors as v
from .cache import KvCache, KvFormat
from .checks import RangeExceeded, check_snapped, first_out_of_range
from .fma import F32Array
from .products import matmul, rows_of
from .trace import TraceName, TraceSink

I32Array = npt.NDArray[np.int32]
I64Array = npt.NDArray[np.int64]


@dataclass
class Call:
    """The tokens of one call: where they stand, what is told to the outside, the layer they are in.

    positions  int64 [T], rising by one
    experts    of the layers done: int32 [T, top_k] each
    """

    positions: I64Array
    trace: TraceSink | None
    layer: int | None = None
    experts: list[I32Array] = field(default_factory=list)

    def name(self, tensor: str) -> str:
        """The full name of a tensor of the present layer."""
        return f"layers.{self.layer}.{tensor}"


class Operators:
    """Tensors are float32 [T, ...]: the vectors of all T tokens of a call go through each operator together."""

    def __init__(self, config: ModelConfig, weights: Callable[[str], Stored], kv: KvFormat) -> None:
        self.config = config
        self._weights = weights
        self._stored: dict[str, Stored] = {}
        self._cache = KvCache(config, kv)
        self.source_length = 0

    def span(self, over: str) -> int:
        """The most positions that attention of a kind may see."""
        if over == "past":
            return self.config.max_seq
        assert self.config.encoder is not None
        return self.config.encoder.max_source

    # --- stored tensors

    def stored(self, name: str) -> Stored:
        """The stored tensor, kept once read."""
        if name not in self._stored:
            self._stored[name] = self._weights(name)
        return self._stored[name]

    def vector(self, name: str) -> F32Array:
        """A stored vector, [n]."""
        return self.stored(name).values().reshape(-1)

    # --- products and norms

    def project(self, name: str, x: F32Array) -> F32Array:
        """``y = W x`` with the stored matrix of that name: x [T, n]."""
        return matmul(self.stored(name), x)

    def float_product(self, name: str, x: F32Array) -> F32Array:
        """``snap(dot8(row, x))`` for each row of a matrix that is always float32: x [T, n]."""
        return f.snap(v.dot8_matrix(self.stored(name).values(), x))

    def project_heads(self, name: str, x: F32Array) -> F32Array:
        """A matrix whose rows belong to heads, each a product with its own head of x: [T, heads, n] to [T, heads, m]."""
        heads = x.shape[1]
        rows = self.stored(name).rows // heads
        parts = [matmul(rows_of(self.stored(name), slice(h * rows, (h + 1) * rows)), x[:, h]) for h in range(heads)]
        return np.stack(parts, axis=1)

    def linear(self, name: str, x: F32Array, *, bias: bool) -> F32Array:
        """The product with NAME.weight, plus NAME.bias where there is one."""
        y = self.project(f"{name}.weight", x)
        return self.add_bias(f"{name}.bias", y) if bias else y

    def add_bias(self, name: str, y: F32Array) -> F32Array:
        """``snap(y + b)``."""
        with np.errstate(all="ignore"):
            return f.snap(y + self.vector(name))

    def norm(self, x: F32Array, name: str, norm: Norm) -> F32Array:
        """The norm whose tensors are NAME.weight and NAME.bias: x [..., n]."""
        y = v.rms(v.centred(x) if norm.kind == "layer" else x, norm.eps)
        if not norm.weight:
            return y
        return v.scaled(y, self.vector(f"{name}.weight"), self.vector(f"{name}.bias") if norm.bias else None)

    # --- heads

    def split(self, x: F32Array, heads: int) -> F32Array:
        """[T, heads * d] as [T, heads, d]."""
        return x.reshape(len(x), heads, -1)

    def join(self, x: F32Array) -> F32Array:
        """[T, heads, d] as [T, heads * d]."""
        return x.reshape(len(x), -1)

    # --- finished vectors

    def emit(
        self,
        call: Call,
        tensor: str,
        values: F32Array,
        *,
        ranged: bool = False,
        limit_bits: int = RANGE_BITS,
        slot: int | None = None,
        widths: I64Array | None = None,
    ) -> F32Array:
        """Assert the contract on a finished tensor [T, n], range-check it if `ranged`, show it to the trace.

        widths  [T]: of a vector only so many elements are there, the others are 0 and are not shown
        """
        check_snapped(tensor, values, finite=not ranged)
        if ranged:
            self.check(call, tensor, values, slot=slot, limit_bits=limit_bits)
        self.show(call, TraceName(call.layer, tensor, slot), values, widths)
        return values

    def check(
        self, call: Call, tensor: str, values: F32Array, *, slot: int | None = None, limit_bits: int = RANGE_BITS
    ) -> F32Array:
        """Range-check a finished tensor [T, n]; `tensor` is its trace name, or the next one that depends on it."""
        bad = first_out_of_range(values, limit_bits)
        if bad is not None:
            raise RangeExceeded(int(call.positions[bad]), tensor, call.layer, slot, limit_bits)
        return values

    def show(self, call: Call, name: TraceName, values: F32Array | I32Array, widths: I64Array | None = None) -> None:
        """Give each token's vector to the trace."""
        if call.trace is not None:
            for i, (position, row) in enumerate(zip(call.positions, values, strict=True)):
                call.trace.put(name, int(position), row if widths is None else row[: widths[i]])
