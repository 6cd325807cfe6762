# SPDX-License-Identifier: Apache-2.0
"""The tensors of a GGUF file, from the importer's own table of names: experts stacked, rows of q and k in the order wanted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from colibri.axes import Attention
from colibri.errors import CheckpointError
from colibri.export.gguf.architectures import WRITTEN
from colibri.export.gguf.refusal import refused
from colibri.export.gguf.rotation import frequencies, rope_of
from colibri.export.gguf.writer import Item
from colibri.importers.bind import Part
from colibri.importers.ggml import GROUP, PLAIN, SMALL
from colibri.importers.gguf.architectures import ARCHITECTURES
from colibri.importers.gguf.tensors import bindings
from colibri.model import F32Array, Model, ModelConfig, Tensor

Type = Literal["f32", "f16", "q8_0"]
FILE_TYPES: dict[Type, int] = {"f32": 0, "f16": 1, "q8_0": 7}
_QK = re.compile(r"layers\.(\d+)\.attn\.[qk]\.(weight|bias)")
_ALWAYS_FLOAT = re.compile(r"blk\.\d+\.ffn_gate_inp(_shexp)?\.weight")


def items(model: Model, architecture: str, type_: Type) -> Iterator[Item]:
    """Yield every tensor in the order of the file: matrices as `type_`, norms, biases and routers as float32."""
    config, table = model.config, ARCHITECTURES[architecture]
    stacks: dict[str, list[Part]] = {}
    for part in bindings(config, {}, table.names, 0):
        if isinstance(part, Part):
            stacks.setdefault(part.source, []).append(part)
    _, divisors = frequencies(rope_of(config), divisors=WRITTEN[architecture].divisors)
    if divisors is not None:
        yield Item("rope_freqs.weight", divisors.shape, PLAIN["F32"].id, divisors.nbytes, divisors.tobytes)
    for name, parts in stacks.items():
        yield _item(name, parts, model, type_, as_adjacent=table.adjacent)


def _item(name: str, parts: list[Part], model: Model, type_: Type, *, as_adjacent: bool) -> Item:
    tensors = [model.tensors[part.target] for part in parts]
    order = [_row_order(model.config, part.target, as_adjacent=as_adjacent) for part in parts]
    shape = parts[0].source_shape
    stored = "F32" if len(shape) == 1 or name.endswith(".bias") or _ALWAYS_FLOAT.fullmatch(name) else type_.upper()
    if stored == "Q8_0" and shape[-1] % GROUP:
        stored = "F32"
    block = {**PLAIN, **SMALL}[stored]
    n_bytes = int(np.prod(shape, dtype=np.int64)) // block.n_elems * block.n_bytes

    def data() -> bytes:
        return b"".join(_ENCODERS[stored](t, rows) for t, rows in zip(tensors, order, strict=True))

    return Item(name, shape, block.id, n_bytes, data)


Order = Callable[[F32Array], F32Array]


def _row_order(config: ModelConfig, target: str, *, as_adjacent: bool) -> Order:
    """How the rows of a tensor are reordered: those of q and k, head by head, where the pairs lie otherwise than wanted."""
    match = _QK.fullmatch(target)
    mixer = config.layers[int(match[1])].mixer if match else None
    if not isinstance(mixer, Attention) or mixer.rope is None or (mixer.rope.pairing == "adjacent") == as_adjacent:
        return lambda rows: rows
    if mixer.rope.rotary_dim != mixer.head_dim or mixer.qk_norm is not None:
        raise refused("heads that are rotated whole, without norms of their own", "rows that cannot be reordered")
    split = (2, mixer.head_dim // 2) if as_adjacent else (mixer.head_dim // 2, 2)

    def reordered(rows: F32Array) -> F32Array:
        heads = rows.reshape(-1, *split, *rows.shape[1:])
        return np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(rows.shape)

    return reordered


def _f32(tensor: Tensor, order: Order) -> bytes:
    return order(tensor.read()).astype("<f4").tobytes()


def _f16(tensor: Tensor, order: Order) -> bytes:
    values = order(tensor.read())
    if np.abs(values).max() >= np.float32(65520.0):
        raise CheckpointError(
            tensor.source, expected="magnitudes below 65520, the range of f16", got="larger", hint="choose --type f32"
        )
    return values.astype("<f2").tobytes()


def _q8_0(tensor: Tensor, order: Order) -> bytes:
    """Blocks of 32: ``d = amax / 127``, ``q = round(w / d)``; d is stored as float16."""
    if tensor.groups is not None:
        q, scales = tensor.groups()
        if q.max() <= 127:  # the blocks the checkpoint has; 128 is -128 of a negative scale
            return _blocks(order(q.astype(np.float32)), order(scales))
    values = order(tensor.read())
    groups = values.reshape(-1, GROUP)
    scales = np.abs(groups).max(axis=1, keepdims=True) / np.float32(127)
    q_values = np.zeros_like(groups)
    np.divide(groups, scales, out=q_values, where=scales != 0)
    return _blocks(np.rint(q_values), scales)


def _blocks(q: F32Array, scales: F32Array) -> bytes:
    rows = q.reshape(-1, GROUP).astype(np.int8).view(np.uint8)
    return np.hstack((scales.reshape(-1, 1).astype("<f2").view(np.uint8), rows)).tobytes()


_ENCODERS = {"F32": _f32, "F16": _f16, "Q8_0": _q8_0}
