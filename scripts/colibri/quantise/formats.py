# SPDX-License-Identifier: Apache-2.0
"""The stored number formats and the quantisation of one matrix (docs/NUMERICS.md 5)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from colibri.errors import CheckpointError
from colibri.model import F32Array, Tensor

Kind = Literal["f32", "bf16", "f16", "q8", "q4"]

GROUPS = (32, 64, 128)

Q4_MAX_COLS = 8192
"""255 * 7 * 127 * 8192 < 2**31: the grouped accumulator of a q4 row cannot overflow."""

_SNAP = np.float32(2.0**-40)
_AMAX_ZERO = 2.0**-33
_LIMIT = np.float32(2.0**50)


@dataclass(frozen=True)
class Format:
    """A number format; group 0 means one scale a row, otherwise the number of columns that share one."""

    kind: Kind
    group: int = 0

    def __str__(self) -> str:
        default = 32 if self.kind == "q4" else 0
        return self.kind if self.group == default else f"{self.kind}:{self.group or 'row'}"

    @property
    def is_integer(self) -> bool:
        """Whether products with it quantise the activations."""
        return self.kind in ("q8", "q4")

    def groups(self, cols: int) -> int:
        """Scales (q8) or multipliers (q4) in a row of `cols` columns."""
        return -(-cols // self.group) if self.group else 1


@dataclass(frozen=True)
class Stored:
    """A matrix in its stored format, before any kernel layout. Vectors have one row.

    data         f32: float32; bf16, f16: uint16 bit patterns; q8, q4: int8; always [rows, cols]
    scales       float32 [rows, groups] for q8, [rows, 1] for q4
    multipliers  uint8 [rows, groups], q4 only
    """

    name: str
    format: Format
    rows: int
    cols: int
    data: npt.NDArray[Any]
    scales: F32Array | None = None
    multipliers: npt.NDArray[np.uint8] | None = None

    def values(self) -> F32Array:
        """The value used for each element, float32 [rows, cols] (the table of docs/NUMERICS.md 5)."""
        kind = self.format.kind
        if kind == "f32":
            return np.asarray(self.data, dtype=np.float32)
        if kind == "bf16":
            return (self.data.astype(np.uint32) << np.uint32(16)).view(np.float32)
        if kind == "f16":
            return snap(self.data.view(np.float16).astype(np.float32))
        assert self.scales is not None
        scales = self.scales
        if self.multipliers is not None:
            scales = self.multipliers.astype(np.float32) * scales
        if self.format.group:
            scales = np.repeat(scales, self.format.group, axis=1)[:, : self.cols]
        return snap(self.data.astype(np.float32) * scales)

    def sha256(self) -> str:
        """Hash of the canonical form: the format, the shape, data, scales, multipliers; little-endian."""
        digest = hashlib.sha256(f"{self.format.kind}:{self.format.group} {self.rows} {self.cols}\n".encode())
        for part in (self.data, self.scales, self.multipliers):
            if part is not None:
                digest.update(np.ascontiguousarray(part.astype(part.dtype.newbyteorder("<"), copy=False)).data)
        return digest.hexdigest()


def snap(values: F32Array) -> F32Array:
    """+0.0 where the magnitude is below 2**-40, the value elsewhere."""
    return np.where(np.abs(values) < _SNAP, np.float32(0.0), values).astype(np.float32, copy=False)


def store(tensor: Tensor, format_: Format) -> Stored:
    """Read a tensor and convert it to `format_`.

    q8:32 of a tensor that has such groups already is those, bit for bit; no value is rounded again.
    Raises CheckpointError for a value the format cannot hold; NaN, infinities and |w| >= 2**50 never come from `read`.
    """
    if tensor.groups is not None and format_ == Format("q8", 32):
        return _store_groups(tensor, format_)
    values = tensor.read()
    matrix = snap(values.reshape(1, -1) if values.ndim == 1 else values)
    rows, cols = matrix.shape
    make = {"f32": _store_f32, "bf16": _store_bf16, "f16": _store_f16, "q8": _store_q8, "q4": _store_q4}[format_.kind]
    data, scales, multipliers = make(matrix, format_, tensor.source)
    return Stored(tensor.name, format_, rows, cols, data, scales, multipliers)


def _store_groups(tensor: Tensor, format_: Format) -> Stored:
    """Integers and scales as the checkpoint has them. The scales are float16 there, so 0 or at least 2**-24."""
    assert tensor.groups is not None
    q, scales = tensor.groups()
    rows, cols = q.shape
    for bad, expected, hint in (
        (~np.isfinite(scales), "finite scales", "the checkpoint is damaged; use another"),
        (
            np.abs(q).max(axis=1, keepdims=True) > 127,
            "integers from -127 to 127, as the kernels take them",
            "choose another format for this part, e.g. q8 or q8:64: its values are then rounded anew",
        ),
    ):
        if bad.any():
            row = int(np.argwhere(bad)[0][0])
            got = "NaN or an infinity" if expected == "finite scales" else "-128 (or 128 with a negative scale)"
            raise CheckpointError(f"{tensor.source}: row {row}", expected=expected, got=got, hint=hint)
    return Stored(tensor.name, format_, rows, cols, q.astype(np.int8), scales)


Parts = tuple[npt.NDArray[Any], F32Array | None, npt.NDArray[np.uint8] | None]


def _store_f32(w: F32Array, format_: Format, source: str) -> Parts:
    return w, None, None


def _store_bf16(w: F32Array, format_: Format, source: str) -> Parts:
    bits = w.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    _refuse(
        np.abs((rounded << np.uint32(16)).view(np.float32)) >= _LIMIT, w, source, "below 2**50 once rounded to bf16"
    )
    return rounded.astype(np.uint16), None, None


def _store_f16(w: F32Array, format_: Format, source: str) -> Parts:
    _refuse(np.abs(w) >= np.float32(65520.0), w, source, "below 65520, the range of f16")
    return w.astype(np.float16).view(np.uint16), None, None


def _store_q8(w: F32Array, format_: Format, source: str) -> Parts:
    amax = _group_amax(w, format_)
    scales = np.where(amax < np.float32(_AMAX_ZERO), np.float32(0), amax / np.float32(127)).astype(np.float32)
    wide = _per_column(scales.astype(np.float64), format_, w.shape[1])
    q = np.zeros(w.shape, dtype=np.float64)
    np.divide(w, wide, out=q, where=wide != 0)
    return np.clip(np.rint(q), -127, 127).astype(np.int8), scales, None


def _store_q4(w: F32Array, format_: Format, source: str) -> Parts:
    if w.shape[1] > Q4_MAX_COLS:
        raise CheckpointError(
            source,
            expected=f"at most {Q4_MAX_COLS} columns for q4",
            got=f"{w.shape[1]}",
            hint="use q8 for this part: -q default=q4,experts=q8 or the like",
        )
    d = _group_amax(w, format_).astype(np.float64) / 7
    largest = d.max(axis=1, keepdims=True)
    s = (largest / 255).astype(np.float32)
    s = np.where((7 * largest < _AMAX_ZERO) | (s < _SNAP), np.float32(0), s).astype(np.float32)
    m = np.ones(d.shape, dtype=np.float64)
    np.divide(d, s, out=m, where=s != 0)
    m = np.clip(np.ceil(m), 1, 255)
    wide = _per_column(m * s.astype(np.float64), format_, w.shape[1])
    q = np.zeros(w.shape, dtype=np.float64)
    np.divide(w, wide, out=q, where=wide != 0)
    return np.clip(np.rint(q), -7, 7).astype(np.int8), s, m.astype(np.uint8)


def _group_amax(w: F32Array, format_: Format) -> F32Array:
    """Largest magnitude of each group, float32 [rows, groups]; the last group may be short."""
    starts = np.arange(0, w.shape[1], format_.group or w.shape[1])
    return np.maximum.reduceat(np.abs(w), starts, axis=1)


def _per_column(scales: npt.NDArray[np.float64], format_: Format, cols: int) -> npt.NDArray[np.float64]:
    if not format_.group:
        return np.broadcast_to(scales, (scales.shape[0], cols))
    return np.repeat(scales, format_.group, axis=1)[:, :cols]


def _refuse(bad: npt.NDArray[np.bool_], w: F32Array, source: str, expected: str) -> None:
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise CheckpointError(
            f"{source}: element {at}",
            expected=f"a magnitude {expected}",
            got=f"{float(w[at])!r}",
            hint="choose f32 or q8 for this part",
        )
