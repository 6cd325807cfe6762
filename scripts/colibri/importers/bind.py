# SPDX-License-Identifier: Apache-2.0
"""From the names and layouts of a checkpoint to the canonical tensors of `colibri.model`.

A family says where each canonical tensor is: all of a source tensor, or a part of one. Here every source tensor must be
used exactly once, every canonical tensor filled exactly once, and each source must have the shape the config implies.
A loader that skips what it does not know would run with experts missing and say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from colibri.errors import CheckpointError
from colibri.importers.decode import check_range
from colibri.importers.ggml import GROUP
from colibri.importers.safetensors import SourceTensor
from colibri.importers.stored import Values, find
from colibri.importers.text import quoted
from colibri.model import F32Array, ModelConfig, Tensor

_T = TypeVar("_T", bound=np.generic)
Index = tuple[int | slice, ...]
Sources = Mapping[str, SourceTensor]
"""Everything a checkpoint has, by name."""

# Buffers that older versions of the framework stored; they are recomputed from the config.
IGNORED_SUFFIXES = ("rotary_emb.inv_freq",)


@dataclass(frozen=True)
class Part:
    """Canonical tensor `target` is ``source.reshape(view)[index]``, transposed where its last two axes are stored the other way.

    source_shape  what the config demands of the whole source tensor
    view          the source's axes, some of them split; None: as they are
    index         integers and slices with NumPy's meaning; a leading integer reads that part of the file only
    merged        the first two axes that are left are one axis of the target
    """

    target: str
    source: str
    source_shape: tuple[int, ...]
    index: Index = ()
    transposed: bool = False
    view: tuple[int, ...] | None = None
    merged: bool = False


@dataclass(frozen=True)
class Copy:
    """`source` must hold the same values as canonical tensor `target`, and is not used otherwise."""

    target: str
    source: str
    source_shape: tuple[int, ...]


@dataclass(frozen=True)
class Skip:
    """Source tensors whose names begin with `prefix` are no part of the language model, or not used when it runs."""

    prefix: str
    reason: str


Binding = Part | Copy | Skip


@dataclass
class _Progress:
    tensors: dict[str, Tensor] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)  # elements of each stored tensor
    skipped: dict[str, str] = field(default_factory=dict)  # name and reason


def bind(
    config: ModelConfig, bindings: Iterable[Binding], sources: Sources, where: str
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return every canonical tensor of `config`, in its order, and the source tensors that were skipped, with the reason.

    bindings  may be lazy: nothing past the first fault is asked for, so a config that claims 2**50 layers costs nothing
    where     the checkpoint, for messages
    Raises CheckpointError for a missing, left-over, ill-shaped, ill-typed or differing source tensor.
    """
    done = _Progress()
    sizes: dict[str, int] = {}
    for binding in bindings:
        if isinstance(binding, Skip):
            done.skipped |= {n: binding.reason for n in sources if n.startswith(binding.prefix)}
            continue
        values = find(binding.source, sources, where, binding.source_shape)
        sizes[binding.source] = math.prod(values.shape)
        if isinstance(binding, Copy):
            _check_copy(values, done.tensors[binding.target])
            n_elems = sizes[binding.source]
        else:
            tensor = _tensor(binding, values)
            assert tensor.name not in done.tensors, "a family binds a tensor twice"
            done.tensors[tensor.name] = tensor
            n_elems = math.prod(tensor.shape)
        done.used[binding.source] = done.used.get(binding.source, 0) + n_elems
        for stored in values.stored:
            done.used.setdefault(stored.name, 0)
    _check_left_over(done, sources)
    shapes = config.tensor_shapes()
    assert {t.name: t.shape for t in done.tensors.values()} == shapes, "a family binds what its config does not have"
    assert all(done.used[name] == n for name, n in sizes.items()), "a family binds half a tensor"
    return {name: done.tensors[name] for name in shapes}, done.skipped


def _tensor(part: Part, values: Values) -> Tensor:
    shape = part.view or values.shape
    assert math.prod(shape) == math.prod(values.shape), "a family's view has another size"
    # The leading integer selects one contiguous run of the file; the rest of the index is applied in memory.
    run, n_runs, rest = 0, 1, part.index
    if rest and isinstance(rest[0], int):
        run, n_runs, rest, shape = rest[0], shape[0], rest[1:], shape[1:]

    def arranged(whole: npt.NDArray[_T]) -> npt.NDArray[_T]:
        selected = whole[rest]
        selected = selected.swapaxes(-1, -2) if part.transposed else selected
        return selected.reshape(-1, *selected.shape[2:]) if part.merged else selected

    def read() -> F32Array:
        result = np.ascontiguousarray(arranged(values.read(run, n_runs).reshape(shape)))
        check_range(result, part.target, values.where)
        return result

    def read_groups() -> tuple[npt.NDArray[np.int16], F32Array]:
        assert values.groups is not None
        q, scales = values.groups(run, n_runs)
        by_group = (*shape[:-1], shape[-1] // GROUP)
        return arranged(q.reshape(shape)), arranged(scales.reshape(by_group))

    # A view of one element has the shape without the memory; merging axes of it would copy.
    outline = np.broadcast_to(np.float32(0), shape)[rest]
    outline_shape = outline.swapaxes(-1, -2).shape if part.transposed else outline.shape
    if part.merged:
        outline_shape = (outline_shape[0] * outline_shape[1], *outline_shape[2:])
    # Rows may be chosen and reordered; what cuts or turns them cuts groups.
    has_groups = values.groups is not None and not part.transposed and shape[-1:] == values.shape[-1:]
    has_groups = has_groups and len(rest) < len(shape) and outline.ndim > 1
    return Tensor(part.target, outline_shape, values.dtype, values.where, read, read_groups if has_groups else None)


def _check_copy(values: Values, tensor: Tensor) -> None:
    if not np.array_equal(values.read(0, 1).view(np.uint32), tensor.read().view(np.uint32).ravel()):
        raise CheckpointError(
            values.where,
            expected=f"a copy of {tensor.source}, as tie_word_embeddings says",
            got="other values",
            hint="set tie_word_embeddings to false if the head was trained apart",
        )


def _check_left_over(done: _Progress, sources: Sources) -> None:
    known = done.used.keys() | done.skipped.keys()
    left = sorted(name for name in sources if name not in known and not name.endswith(IGNORED_SUFFIXES))
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        raise CheckpointError(
            sources[left[0]].where,
            expected="only tensors that the model uses",
            got=f"{quoted(left[0])}{more} left over",
            hint="the configuration and the tensors are of different models, or this variant is not supported",
        )
