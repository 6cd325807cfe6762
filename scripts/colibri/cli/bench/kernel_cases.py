# SPDX-License-Identifier: Apache-2.0
"""What `bench --kernels` runs: synthetic matrices, which are the image, and vectors, which the requests bring."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colibri.image.kernel_layouts import KernelLayout, align_up, pad8
from colibri.image.matrix import DTYPE_IDS, Matrix, matrix_bytes
from colibri.model import Tensor
from colibri.quantise import parse_format, store
from colibri_sim.qemu.frames import encode

OPERATIONS = (
    *("product", "widen", "dot", "axpy", "scale", "add", "normalise", "absmax", "softmax", "swiglu", "rotate"),
    *("scores", "mix"),
)
"""In the order of firmware/apps/kernels/kernels.c."""
FORMATS = ("f32", "bf16", "f16", "q8", "q8:32", "q8:64", "q8:128", "q4:32", "q4:64", "q4:128")
SHAPES = ((256, 128), (128, 256), (64, 64), (37, 100))
"""Rows, columns. On a board whose memory for weights does not hold all of them, the first ones are left out."""
FORMATS_OF_ALL = ("f32", "q8", "q8:32", "q4:32")
"""Formats of the shapes after the first; that one has them all."""
VECTOR_ELEMS = 128
CACHE_ROWS, HEAD_DIM = 64, 32
ALIGN_BYTES = 64


@dataclass(frozen=True)
class Case:
    """One request: an operation on a matrix at an offset of the image, and a vector."""

    operation: str
    matrix: Matrix
    offset: int
    x: npt.NDArray[np.float32]

    @property
    def quantises(self) -> bool:
        """Whether the vector is quantised before, and counted by itself."""
        return self.operation == "product" and self.matrix.format.is_integer

    @property
    def macs(self) -> int:
        """Multiply-accumulates; 0 for what multiplies no two vectors."""
        n = {"product": self.matrix.macs, "scores": self.matrix.macs, "mix": self.matrix.macs, "dot": self.matrix.cols}
        return n.get(self.operation, self.matrix.cols if self.operation == "axpy" else 0)

    def request(self) -> bytes:
        """The 'K' frame."""
        m = self.matrix
        words = (m.rows, m.cols, DTYPE_IDS[m.format.kind], m.format.group, m.layout.id, m.row_bytes, m.scales_offset)
        return encode("K", struct.pack("<9I", OPERATIONS.index(self.operation), *words, self.offset) + self.x.tobytes())


@dataclass(frozen=True)
class Cases:
    """Everything for one kernel layout: the image, and what is asked of it."""

    image: bytes
    cases: tuple[Case, ...]


def cases_for(layout: KernelLayout, room_bytes: int | None) -> Cases:
    """The cases whose matrices fit `room_bytes` of image. The numbers are the same for every layout."""
    for n_left_out in range(len(SHAPES)):
        built = _build(layout, SHAPES[n_left_out:])
        if room_bytes is None or len(built.image) <= room_bytes:
            break
    return built


def _build(layout: KernelLayout, shapes: tuple[tuple[int, int], ...]) -> Cases:
    image = bytearray()
    cases: list[Case] = []
    for operation, text, rows, cols in _wanted(shapes):
        drawn = np.random.default_rng([rows, cols, *text.encode()])
        weights = drawn.standard_normal((rows, cols)).astype(np.float32)
        format_ = parse_format(text)
        matrix = Matrix(rows, cols, format_, layout)
        n = rows if operation == "mix" else cols
        x = np.zeros(pad8(n), np.float32)
        x[:n] = drawn.uniform(0.1, 1.0, n)
        offset = align_up(len(image), ALIGN_BYTES)
        if operation in ("product", "scores", "mix"):
            stored = store(Tensor(text, (rows, cols), "f32", text, weights.copy), format_)
            image += bytes(offset - len(image)) + matrix_bytes(stored, matrix)
        if operation == "product":
            cases.append(Case("widen", matrix, offset, np.zeros(0, np.float32)))
        cases.append(Case(operation, matrix, min(offset, len(image)), x))
    return Cases(bytes(image), tuple(cases))


def _wanted(shapes: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, str, int, int]]:
    """Operation, format, rows, columns."""
    for i, (rows, cols) in enumerate(shapes):
        yield from (("product", text, rows, cols) for text in (FORMATS_OF_ALL if i else FORMATS))
    yield from ((operation, "f32", CACHE_ROWS, HEAD_DIM) for operation in ("scores", "mix"))
    yield from ((operation, "f32", 1, VECTOR_ELEMS) for operation in OPERATIONS[2:-2])
