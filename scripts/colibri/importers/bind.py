# SPDX-License-Identifier: Apache-2.0
"""From the names and layouts of a checkpoint to the canonical tensors of `colibri.model`.

A family says where each canonical tensor is: all of a source tensor, or a part of one. Here every source tensor must be
used exactly once, every canonical tensor filled exactly once, and each source must have the shape the config implies.
A loader that skips what it does not know would run with experts missing and say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from colibri.errors import CheckpointError
from colibri.importers.decode import BYTES_OF_DTYPE, DTYPES, check_range, to_float32
from colibri.importers.safetensors import SourceTensor
from colibri.importers.text import quoted, shape_text
from colibri.model import F32Array, ModelConfig, Tensor

Index = tuple[int | slice, ...]

# Buffers that older versions of the framework stored; they are recomputed from the config.
IGNORED_SUFFIXES = ("rotary_emb.inv_freq",)


@dataclass(frozen=True)
class Part:
    """Canonical tensor `target` is ``source[index]``, transposed where its last two axes are stored the other way.

    source_shape  what the config demands of the whole source tensor
    index         integers and slices with NumPy's meaning; a leading integer reads that part of the file only
    """

    target: str
    source: str
    source_shape: tuple[int, ...]
    index: Index = ()
    transposed: bool = False


@dataclass(frozen=True)
class Copy:
    """`source` must hold the same values as canonical tensor `target`, and is not used otherwise."""

    target: str
    source: str
    source_shape: tuple[int, ...]


def bind(
    config: ModelConfig, bindings: Iterable[Part | Copy], sources: Mapping[str, SourceTensor], where: str
) -> dict[str, Tensor]:
    """Return every canonical tensor of `config`, in its order.

    bindings  may be lazy: nothing past the first fault is asked for, so a config that claims 2**50 layers costs nothing
    where     the checkpoint, for messages
    Raises CheckpointError for a missing, left-over, ill-shaped, ill-typed or differing source tensor.
    """
    tensors: dict[str, Tensor] = {}
    used: dict[str, int] = {}
    for binding in bindings:
        source = _matching(binding, sources, where)
        if isinstance(binding, Copy):
            _check_copy(source, tensors[binding.target])
            used[source.name] = math.prod(source.shape)
            continue
        tensor = _tensor(binding, source)
        assert tensor.name not in tensors, "a family binds a tensor twice"
        tensors[tensor.name] = tensor
        used[source.name] = used.get(source.name, 0) + math.prod(tensor.shape)
    _check_left_over(used, sources)
    shapes = config.tensor_shapes()
    assert {t.name: t.shape for t in tensors.values()} == shapes, "a family binds what its config does not have"
    assert all(n == math.prod(sources[name].shape) for name, n in used.items()), "a family binds half a tensor"
    return {name: tensors[name] for name in shapes}


def _matching(binding: Part | Copy, sources: Mapping[str, SourceTensor], where: str) -> SourceTensor:
    source = sources.get(binding.source)
    if source is None:
        raise CheckpointError(
            where,
            expected=f"tensor {quoted(binding.source)} of shape {shape_text(binding.source_shape)}",
            got="no tensor of that name",
            hint="config.json and the tensors are of different models, or a file is missing",
        )
    if source.dtype not in DTYPES:
        raise CheckpointError(
            source.where,
            expected="F32, F16 or BF16 weights",
            got=source.dtype,
            hint="import the checkpoint from before it was quantised or converted; Colibri quantises by itself",
        )
    if source.shape != binding.source_shape:
        raise CheckpointError(
            source.where,
            expected=f"shape {shape_text(binding.source_shape)} from config.json",
            got=f"shape {shape_text(source.shape)}",
            hint="config.json and the tensors are of different models",
        )
    return source


def _tensor(part: Part, source: SourceTensor) -> Tensor:
    # The leading integer selects one contiguous block of the file; the rest of the index is applied in memory.
    block, rest, shape = 0, part.index, source.shape
    if rest and isinstance(rest[0], int):
        block, rest, shape = rest[0], rest[1:], shape[1:]
    n_bytes = math.prod(shape) * BYTES_OF_DTYPE[source.dtype]

    def arranged(values: F32Array) -> F32Array:
        selected = values[rest]
        return np.ascontiguousarray(selected.swapaxes(-1, -2) if part.transposed else selected)

    def read() -> F32Array:
        values = arranged(to_float32(source.read_bytes(block * n_bytes, n_bytes), source.dtype, shape))
        check_range(values, part.target, source.where)
        return values

    # A view of one element has the shape without the memory.
    outline = np.broadcast_to(np.float32(0), shape)[rest]
    outline_shape = outline.swapaxes(-1, -2).shape if part.transposed else outline.shape
    return Tensor(part.target, outline_shape, DTYPES[source.dtype], source.where, read)


def _check_copy(source: SourceTensor, tensor: Tensor) -> None:
    values = to_float32(source.read_bytes(0, source.n_bytes), source.dtype, source.shape)
    if not np.array_equal(values.view(np.uint32), tensor.read().view(np.uint32)):
        raise CheckpointError(
            source.where,
            expected=f"a copy of {tensor.source}, as tie_word_embeddings says",
            got="other values",
            hint="set tie_word_embeddings to false if the head was trained apart",
        )


def _check_left_over(used: Mapping[str, int], sources: Mapping[str, SourceTensor]) -> None:
    left = sorted(name for name in sources if name not in used and not name.endswith(IGNORED_SUFFIXES))
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        raise CheckpointError(
            sources[left[0]].where,
            expected="only tensors that the model uses",
            got=f"{quoted(left[0])}{more} left over",
            hint="config.json and the tensors are of different models, or this variant is not supported",
        )
