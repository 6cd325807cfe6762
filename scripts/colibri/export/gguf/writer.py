# SPDX-License-Identifier: Apache-2.0
"""The GGUF container, version 3: pairs and tensors to a file. Tensors are converted one at a time, as they are written."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

_MAGIC, _VERSION, _ALIGNMENT = b"GGUF", 3, 32
_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9

Value = bool | int | float | str | list[int] | list[float] | list[str]


@dataclass(frozen=True)
class Item:
    """A tensor to be written.

    shape    slowest dimension first
    type_id  number of its block type;  n_bytes: of all blocks
    data     gives them
    """

    name: str
    shape: tuple[int, ...]
    type_id: int
    n_bytes: int
    data: Callable[[], bytes]


def write(file: BinaryIO, metadata: Mapping[str, Value], items: Iterable[Item]) -> None:
    """Write a file. Integers become uint32, floats float32, lists of integers int32."""
    listed = list(items)
    header = [_MAGIC, struct.pack("<IQQ", _VERSION, len(listed), len(metadata))]
    header += [_string(key) + _typed(value) for key, value in metadata.items()]
    at = 0
    for item in listed:
        dims = item.shape[::-1]
        header.append(_string(item.name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, item.type_id, at))
        at += _padded(item.n_bytes)
    raw = b"".join(header)
    file.write(raw.ljust(_padded(len(raw)), b"\0"))
    for item in listed:
        data = item.data()
        assert len(data) == item.n_bytes, "a tensor of another size than announced"
        file.write(data.ljust(_padded(item.n_bytes), b"\0"))


def _padded(n: int) -> int:
    return -(-n // _ALIGNMENT) * _ALIGNMENT


def _string(text: str) -> bytes:
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def _typed(value: Value) -> bytes:
    if isinstance(value, list):
        kind = _STRING if isinstance(value[0], str) else _F32 if isinstance(value[0], float) else _I32
        return struct.pack("<IIQ", _ARRAY, kind, len(value)) + b"".join(_scalar(kind, v) for v in value)
    kind = _BOOL if isinstance(value, bool) else _U32 if isinstance(value, int) else _F32
    kind = _STRING if isinstance(value, str) else kind
    return struct.pack("<I", kind) + _scalar(kind, value)


def _scalar(kind: int, value: bool | int | float | str) -> bytes:
    if isinstance(value, str):
        return _string(value)
    return struct.pack({_U32: "<I", _I32: "<i", _F32: "<f", _BOOL: "<?"}[kind], value)
