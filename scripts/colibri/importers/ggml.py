# SPDX-License-Identifier: Apache-2.0
"""The block formats of GGUF: sizes, and values as float32.

Q8_0, Q4_0 and their like are decoded here; K-quants and the rest by the `gguf` package, which has their grids. A block holds
consecutive elements of a row, so rows are independent. Each formula is evaluated in float32 in the order written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colibri.errors import ToolError
from colibri.model import F32Array

GROUP = 32
"""Elements of the small formats' block."""

_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class BlockType:
    """One tensor type: its number in the file, elements and bytes of a block."""

    id: int
    n_elems: int
    n_bytes: int


PLAIN = {"F32": BlockType(0, 1, 4), "F16": BlockType(1, 1, 2), "BF16": BlockType(30, 1, 2)}
SMALL = {
    "Q4_0": BlockType(2, 32, 18),
    "Q4_1": BlockType(3, 32, 20),
    "Q5_0": BlockType(6, 32, 22),
    "Q5_1": BlockType(7, 32, 24),
    "Q8_0": BlockType(8, 32, 34),
}
PACKAGED = {
    "Q2_K": BlockType(10, 256, 84),
    "Q3_K": BlockType(11, 256, 110),
    "Q4_K": BlockType(12, 256, 144),
    "Q5_K": BlockType(13, 256, 176),
    "Q6_K": BlockType(14, 256, 210),
    "IQ2_XXS": BlockType(16, 256, 66),
    "IQ2_XS": BlockType(17, 256, 74),
    "IQ3_XXS": BlockType(18, 256, 98),
    "IQ1_S": BlockType(19, 256, 50),
    "IQ4_NL": BlockType(20, 32, 18),
    "IQ3_S": BlockType(21, 256, 110),
    "IQ2_S": BlockType(22, 256, 82),
    "IQ4_XS": BlockType(23, 256, 136),
    "IQ1_M": BlockType(29, 256, 56),
    "TQ1_0": BlockType(34, 256, 54),
    "TQ2_0": BlockType(35, 256, 66),
    "MXFP4": BlockType(39, 32, 17),
    "NVFP4": BlockType(40, 64, 36),
}
BLOCKS = {**SMALL, **PACKAGED}
TYPES = {**PLAIN, **BLOCKS}


def require_decoder(dtype: str, where: str) -> None:
    """Raise ToolError where a type needs the `gguf` package and it is not installed."""
    if dtype in PACKAGED:
        try:
            import gguf  # noqa: F401  # optional: only asked whether it is there
        except ImportError:
            raise ToolError(
                where,
                expected=f"the gguf package, to decode {dtype}",
                got="it is not installed",
                hint="pip install 'colibri-firmware[gguf]'",
            ) from None


def to_float32(data: bytes, dtype: str) -> F32Array:
    """Convert whole blocks; a new flat array."""
    block = BLOCKS[dtype]
    raw = np.frombuffer(data, np.uint8).reshape(-1, block.n_bytes)
    if dtype in PACKAGED:
        from gguf.constants import GGMLQuantizationType
        from gguf.quants import dequantize

        with np.errstate(all="ignore"):  # what is not finite is refused where the values are read
            return np.asarray(dequantize(raw, GGMLQuantizationType(block.id)), dtype=np.float32).reshape(-1)
    with np.errstate(all="ignore"):
        return _DECODERS[dtype](raw).reshape(-1)


def groups(data: bytes, dtype: str) -> tuple[npt.NDArray[np.int16], F32Array]:
    """The integers and scales of Q8_0 or Q4_0 blocks, ``value = q * scale``, with a scale that is never negative.

    q is -128 to 128: where the file's scale is negative both signs are turned, which changes no value; where it is 0, q is 0.
    Returns q [blocks, 32] and scales [blocks].
    """
    raw = np.frombuffer(data, np.uint8).reshape(-1, SMALL[dtype].n_bytes)
    with np.errstate(all="ignore"):
        scales = _half(raw, 0).reshape(-1)
    q = raw[:, 2:].view(np.int8).astype(np.int16) if dtype == "Q8_0" else _nibbles(raw[:, 2:]).astype(np.int16) - 8
    signs = np.sign(scales).astype(np.int16) if np.isfinite(scales).all() else np.ones(len(scales), np.int16)
    return q * signs[:, None], np.abs(scales)


def _half(raw: _Bytes, at: int) -> F32Array:
    return np.ascontiguousarray(raw[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: _Bytes) -> _Bytes:
    """Low nibbles are the first 16 elements, high ones the last."""
    return np.concatenate((packed & 15, packed >> 4), axis=1)


def _fifth_bits(raw: _Bytes, at: int) -> _Bytes:
    bits = np.ascontiguousarray(raw[:, at : at + 4]).view("<u4")
    return ((bits >> np.arange(32, dtype=np.uint32) & 1) << 4).astype(np.uint8)


def _q8_0(raw: _Bytes) -> F32Array:
    return _half(raw, 0) * raw[:, 2:].view(np.int8).astype(np.float32)


def _q4_0(raw: _Bytes) -> F32Array:
    return _half(raw, 0) * (_nibbles(raw[:, 2:]).astype(np.float32) - np.float32(8))


def _q4_1(raw: _Bytes) -> F32Array:
    return _half(raw, 0) * _nibbles(raw[:, 4:]).astype(np.float32) + _half(raw, 2)


def _q5_0(raw: _Bytes) -> F32Array:
    q = _nibbles(raw[:, 6:]) | _fifth_bits(raw, 2)
    return _half(raw, 0) * (q.astype(np.float32) - np.float32(16))


def _q5_1(raw: _Bytes) -> F32Array:
    q = _nibbles(raw[:, 8:]) | _fifth_bits(raw, 4)
    return _half(raw, 0) * q.astype(np.float32) + _half(raw, 2)


_DECODERS: dict[str, Callable[[_Bytes], F32Array]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
}
