# SPDX-License-Identifier: Apache-2.0
"""A tensor's values, whichever number of stored tensors hold them: floats, or small codes with scales of their own.

NAME                        F32, F16, BF16
NAME, NAME_scale_inv        F8_E4M3 [rows, cols] with one F32 scale for each block of 128 x 128 (DeepSeek-V3)
NAME, NAME_group_scales     I8, flat groups with one F32 scale each (llama2.c)
NAME_blocks, NAME_scales    U8: 4-bit floats, two a byte, and an exponent for each 32 of them (gpt-oss)
NAME                        a block type of GGUF (ggml)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colibri.errors import CheckpointError
from colibri.importers import ggml
from colibri.importers.decode import BYTES_OF_DTYPE, DTYPES, mxfp4_to_float32, scale_blocks, to_float32
from colibri.importers.safetensors import SourceTensor
from colibri.importers.text import quoted, shape_text
from colibri.model import F32Array

FP8_BLOCK = 128
GROUP_SCALES = "_group_scales"
MXFP4_GROUP = 32
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Values:
    """One tensor of the checkpoint.

    stored  the tensors of the files that hold it, the one that messages name first
    dtype   colibri.model's spelling
    read    run i of n equal runs of the values, flat; a new array. read(0, 1) is all
    groups  the same of integers and scales [groups], where each 32 values of a row are integers times one scale
    """

    stored: tuple[SourceTensor, ...]
    shape: Shape
    dtype: str
    read: Callable[[int, int], F32Array]
    groups: Callable[[int, int], tuple[npt.NDArray[np.int16], F32Array]] | None = None

    @property
    def where(self) -> str:
        """The file and the tensor, for messages."""
        return self.stored[0].where


def find(name: str, sources: Mapping[str, SourceTensor], where: str, shape: Shape) -> Values:
    """Return the tensor called `name`; raises CheckpointError where it is missing, of another type or not of `shape`.

    where  the checkpoint, for messages
    """
    blocks, scales = sources.get(f"{name}_blocks"), sources.get(f"{name}_scales")
    if blocks is not None and scales is not None and name not in sources:
        found = _mxfp4(blocks, scales)
    elif name in sources and f"{name}{GROUP_SCALES}" in sources:
        found = _group_scaled(sources[name], sources[f"{name}{GROUP_SCALES}"])
    elif name in sources and sources[name].dtype in ggml.BLOCKS:
        found = _blocks(sources[name])
    elif name in sources:
        found = _floats(sources[name], sources.get(f"{name}_scale_inv"))
    else:
        raise CheckpointError(
            where,
            expected=f"tensor {quoted(name)} of shape {shape_text(shape)}",
            got="no tensor of that name",
            hint="the configuration and the tensors are of different models, or a file is missing",
        )
    if found.shape != shape:
        raise wrong_shape(found, shape_text(shape))
    return found


def wrong_shape(found: Values, expected: str) -> CheckpointError:
    """Return the error for a shape that the config does not mean."""
    return CheckpointError(
        found.where,
        expected=f"shape {expected} from the configuration",
        got=f"shape {shape_text(found.shape)}",
        hint="the configuration and the tensors are of different models",
    )


def _floats(source: SourceTensor, scales: SourceTensor | None) -> Values:
    if source.dtype == "F8_E4M3" and scales is not None:
        return _block_scaled(source, scales)
    if source.dtype not in DTYPES:
        raise CheckpointError(
            source.where,
            expected="F32, F16 or BF16 weights",
            got=source.dtype,
            hint="import the checkpoint from before it was quantised or converted; Colibri quantises by itself",
        )

    def read(i: int, n: int) -> F32Array:
        n_bytes = math.prod(source.shape) // n * BYTES_OF_DTYPE[source.dtype]
        return to_float32(source.read_bytes(i * n_bytes, n_bytes), source.dtype, (-1,))

    return Values((source,), source.shape, DTYPES[source.dtype], read)


def _blocks(source: SourceTensor) -> Values:
    ggml.require_decoder(source.dtype, source.where)

    def run(i: int, n: int) -> bytes:
        assert source.n_bytes % n == 0, "a run ends inside a block"
        return source.read_bytes(i * (source.n_bytes // n), source.n_bytes // n)

    return Values(
        (source,),
        source.shape,
        source.dtype.lower(),
        lambda i, n: ggml.to_float32(run(i, n), source.dtype),
        (lambda i, n: ggml.groups(run(i, n), source.dtype)) if source.dtype in ("Q8_0", "Q4_0") else None,
    )


def _block_scaled(source: SourceTensor, scales: SourceTensor) -> Values:
    if len(source.shape) != 2:
        raise CheckpointError(
            source.where,
            expected="a matrix, as its block scales",
            got=f"shape {shape_text(source.shape)}",
            hint="import the checkpoint from before it was quantised",
        )
    _check_scales(scales, "F32", tuple(-(-n // FP8_BLOCK) for n in source.shape))

    def read(i: int, n: int) -> F32Array:
        values = to_float32(source.read_bytes(0, source.n_bytes), source.dtype, source.shape)
        scaled = scale_blocks(values, to_float32(scales.read_bytes(0, scales.n_bytes), "F32", scales.shape), FP8_BLOCK)
        return np.asarray(scaled.reshape(n, -1)[i])

    return Values((source, scales), source.shape, "f8_e4m3", read)


def _group_scaled(source: SourceTensor, scales: SourceTensor) -> Values:
    """Whoever lays out such a pair has checked it: the container of safetensors has none."""
    group = math.prod(source.shape) // math.prod(scales.shape)

    def read(i: int, n: int) -> F32Array:
        codes = np.frombuffer(source.read_bytes(0, source.n_bytes), np.int8).astype(np.float32).reshape(-1, group)
        scaled = codes * to_float32(scales.read_bytes(0, scales.n_bytes), "F32", (-1, 1))
        return np.asarray(scaled.reshape(n, -1)[i])

    return Values((source, scales), source.shape, "q8", read)


def _mxfp4(blocks: SourceTensor, scales: SourceTensor) -> Values:
    if blocks.dtype != "U8" or len(blocks.shape) < 2 or blocks.shape[-1] != MXFP4_GROUP // 2:
        raise CheckpointError(
            blocks.where,
            expected=f"U8 blocks of {MXFP4_GROUP // 2} bytes",
            got=f"{blocks.dtype} {shape_text(blocks.shape)}",
            hint="this is not the MXFP4 layout of gpt-oss",
        )
    _check_scales(scales, "U8", blocks.shape[:-1])
    shape = (*blocks.shape[:-2], blocks.shape[-2] * MXFP4_GROUP)

    def read(i: int, n: int) -> F32Array:
        assert scales.n_bytes % n == 0, "a family cuts a group of MXFP4 values"
        n_scales = scales.n_bytes // n
        n_codes = n_scales * MXFP4_GROUP // 2
        codes = blocks.read_bytes(i * n_codes, n_codes)
        return mxfp4_to_float32(codes, scales.read_bytes(i * n_scales, n_scales), (-1,))

    return Values((blocks, scales), shape, "mxfp4", read)


def _check_scales(scales: SourceTensor, dtype: str, shape: Shape) -> None:
    if (scales.dtype, scales.shape) != (dtype, shape):
        raise CheckpointError(
            scales.where,
            expected=f"{dtype} scales of shape {shape_text(shape)}",
            got=f"{scales.dtype} {shape_text(scales.shape)}",
            hint="the scales belong to another tensor, or its blocks have another size",
        )
