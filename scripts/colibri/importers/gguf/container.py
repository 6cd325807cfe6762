# SPDX-License-Identifier: Apache-2.0
"""The GGUF container, versions 2 and 3, little-endian: an untrusted header, checked in full before any tensor is touched.

    "GGUF"  u32 version  u64 n_tensors  u64 n_kv   n_kv pairs   n_tensors infos   padding   data

    pair    string key, u32 type, value        string: u64 bytes, the bytes        array: u32 type, u64 count, values
    info    string name, u32 n_dims, u64 dims[n_dims] (fastest first), u32 type, u64 offset from the start of the data

The data begins at a multiple of general.alignment, and so does each tensor; sorted by offset they follow each other with
nothing but padding between and after them. No length is believed before it was compared with what is left of the file.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from colibri.errors import CheckpointError
from colibri.importers.files import FileState, opened
from colibri.importers.ggml import TYPES
from colibri.importers.gguf import limits
from colibri.importers.gguf.metadata import ALIGNMENT, Entry, Metadata, ValueType
from colibri.importers.safetensors import SourceTensor
from colibri.importers.text import place, quoted, shape_text

MAGIC = b"GGUF"
VERSIONS = (2, 3)

_HINT = "the file is damaged or cut short; download it again, or convert it anew"
_KEY = re.compile(r"[a-z0-9_.\-]+")
_NAME = re.compile(r"[A-Za-z0-9_.\-]+")
_SCALARS = {
    ValueType.UINT8: "<B",
    ValueType.INT8: "<b",
    ValueType.UINT16: "<H",
    ValueType.INT16: "<h",
    ValueType.UINT32: "<I",
    ValueType.INT32: "<i",
    ValueType.FLOAT32: "<f",
    ValueType.BOOL: "<B",
    ValueType.UINT64: "<Q",
    ValueType.INT64: "<q",
    ValueType.FLOAT64: "<d",
}
_TYPE_NAMES = {block.id: name for name, block in TYPES.items()}
_LEAST_PAIR_BYTES = 8 + 1 + 4 + 1  # a key of one byte, a value of one
_LEAST_INFO_BYTES = 8 + 1 + 4 + 8 + 4 + 8


@dataclass(frozen=True)
class Container:
    """One file: its pairs, and its tensors by name in the order of their data. Shapes are row-major, slowest first."""

    metadata: Metadata
    tensors: dict[str, SourceTensor]


def read_container(path: Path) -> Container:
    """Read and check one file's header; raises CheckpointError naming the file, and the key or tensor where there is one."""
    with opened(path) as (file, state):
        cursor = _Cursor(path, file, state.n_bytes)
        n_tensors, n_pairs = _counts(cursor)
        metadata = _pairs(cursor, n_pairs)
        infos = [_info(cursor) for _ in range(n_tensors)]
        alignment = _alignment(metadata)
        start = _padded(cursor.at, alignment)
        tensors = _place(path, state, infos, start, alignment)
        _check_end(cursor, tensors, start, alignment)
    return Container(metadata, tensors)


@dataclass
class _Cursor:
    """Reads forward; nothing past the end of the file, or of what a header may be, is asked for."""

    path: Path
    file: BinaryIO
    n_bytes: int
    at: int = 0

    def error(self, expected: str, got: str, inside: str = "header") -> CheckpointError:
        return CheckpointError(place(self.path, inside), expected=expected, got=got, hint=_HINT)

    def take(self, n: int, what: str) -> bytes:
        if n > self.n_bytes - self.at:
            raise self.error(f"{what} of {n} bytes", f"a file with {self.n_bytes - self.at} bytes left")
        if n > limits.MAX_HEADER_BYTES - self.at:
            raise self.error(f"a header of at most {limits.MAX_HEADER_BYTES} bytes", f"{what} of {n} bytes past it")
        data = self.file.read(n)
        if len(data) != n:
            raise self.error(f"{what} of {n} bytes", "a file that became shorter")
        self.at += n
        return data

    def number(self, form: str, what: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form), what))[0]

    def text(self, what: str, most: int) -> str:
        n = self.number("<Q", f"the length of {what}")
        if n > most:
            raise self.error(f"{what} of at most {most} bytes", f"one of {n}")
        try:
            return self.take(n, what).decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(f"{what} in UTF-8", "other bytes") from None


def _counts(cursor: _Cursor) -> tuple[int, int]:
    if cursor.n_bytes < 24 or cursor.take(4, "a magic number") != MAGIC:
        raise cursor.error("a GGUF file: 'GGUF' and a header of 24 bytes", "another kind of file, or a shorter one")
    version = cursor.number("<I", "a version")
    if version and version & 0xFFFF == 0:
        raise CheckpointError(
            place(cursor.path, "header"),
            expected="a little-endian file",
            got=f"version {version:#x}: a big-endian one",
            hint="convert the checkpoint on a little-endian machine",
        )
    if version not in VERSIONS:
        raise cursor.error("version 2 or 3", f"version {version}")
    counts = []
    for what, least in (("tensors", _LEAST_INFO_BYTES), ("key-value pairs", _LEAST_PAIR_BYTES)):
        n = cursor.number("<Q", f"the number of {what}")
        if n > limits.MAX_ENTRIES or n * least > cursor.n_bytes - cursor.at:
            raise cursor.error(f"at most {limits.MAX_ENTRIES} {what}, and as many as the file can hold", f"{n}")
        counts.append(n)
    return counts[0], counts[1]


def _pairs(cursor: _Cursor, n_pairs: int) -> Metadata:
    entries: dict[str, Entry] = {}
    for _ in range(n_pairs):
        key = cursor.text("a key", limits.MAX_KEY_BYTES)
        if not _KEY.fullmatch(key):
            raise cursor.error("keys of a-z, 0-9, '_', '.' and '-'", quoted(key))
        if key in entries:
            raise cursor.error("each key once", f"{quoted(key)} twice")
        kind = _type(cursor, key)
        entries[key] = _array(cursor, key) if kind is ValueType.ARRAY else Entry(kind, _scalar(cursor, kind, key))
    return Metadata(place(cursor.path), entries)


def _type(cursor: _Cursor, key: str) -> ValueType:
    number = cursor.number("<I", "a type")
    try:
        return ValueType(number)
    except ValueError:
        raise cursor.error("a type from 0 to 12", f"{number}", key) from None


def _scalar(cursor: _Cursor, kind: ValueType, key: str) -> Any:
    if kind is ValueType.STRING:
        return cursor.text(f"the value of {quoted(key)}", limits.MAX_HEADER_BYTES)
    value = cursor.number(_SCALARS[kind], f"the value of {quoted(key)}")
    if kind is ValueType.BOOL:
        if value > 1:
            raise cursor.error("0 or 1 for a bool", f"{value}", key)
        return bool(value)
    return value


def _array(cursor: _Cursor, key: str) -> Entry:
    kind = _type(cursor, key)
    n = cursor.number("<Q", f"the number of values of {quoted(key)}")
    if kind is ValueType.ARRAY:
        raise cursor.error("an array of scalars or strings", "an array of arrays", key)
    if kind is ValueType.STRING:
        if n > limits.MAX_STRINGS or n * 8 > cursor.n_bytes - cursor.at:
            raise cursor.error(f"at most {limits.MAX_STRINGS} strings, and as many as the file can hold", f"{n}", key)
        return Entry(ValueType.STRING, [_scalar(cursor, kind, key) for _ in range(n)], is_array=True)
    values = np.frombuffer(
        cursor.take(n * struct.calcsize(_SCALARS[kind]), f"the values of {quoted(key)}"), _SCALARS[kind]
    )
    if kind is ValueType.BOOL and values.size and values.max() > 1:
        raise cursor.error("0 or 1 for a bool", f"{values.max()}", key)
    return Entry(kind, (values != 0 if kind is ValueType.BOOL else values).tolist(), is_array=True)


@dataclass(frozen=True)
class _Info:
    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    n_bytes: int


def _info(cursor: _Cursor) -> _Info:
    name = cursor.text("a tensor's name", limits.MAX_NAME_BYTES)
    inside = f"tensor {quoted(name)}"
    if not _NAME.fullmatch(name):
        raise cursor.error("a name of letters, digits, '_', '.' and '-'", quoted(name), inside)
    n_dims = cursor.number("<I", "a number of dimensions")
    if not 1 <= n_dims <= limits.MAX_DIMS:
        raise cursor.error(f"1 to {limits.MAX_DIMS} dimensions", f"{n_dims}", inside)
    dims = [cursor.number("<Q", "a dimension") for _ in range(n_dims)]
    if not all(1 <= n <= limits.MAX_DIM for n in dims):
        raise cursor.error(f"dimensions from 1 to {limits.MAX_DIM}", shape_text(tuple(dims)), inside)
    number = cursor.number("<I", "a type")
    if number not in _TYPE_NAMES:
        raise CheckpointError(
            place(cursor.path, inside),
            expected=f"weights of type {', '.join(TYPES)}",
            got=f"type number {number}",
            hint="convert or quantise the model to one of these types",
        )
    dtype, offset = _TYPE_NAMES[number], cursor.number("<Q", "an offset")
    block = TYPES[dtype]
    if dims[0] % block.n_elems:
        raise cursor.error(f"rows of whole blocks of {block.n_elems} elements, as {dtype} has", f"{dims[0]}", inside)
    return _Info(name, dtype, tuple(reversed(dims)), offset, math.prod(dims) // block.n_elems * block.n_bytes)


def _alignment(metadata: Metadata) -> int:
    if not metadata.has(ALIGNMENT):
        return 32
    alignment = metadata.exactly(ALIGNMENT, ValueType.UINT32)
    if alignment & (alignment - 1) or not limits.MIN_ALIGNMENT <= alignment <= limits.MAX_ALIGNMENT:
        raise metadata.error(ALIGNMENT, f"a power of two from {limits.MIN_ALIGNMENT} to {limits.MAX_ALIGNMENT}")
    return int(alignment)


def _padded(n: int, alignment: int) -> int:
    return -(-n // alignment) * alignment


def _place(path: Path, state: FileState, infos: list[_Info], start: int, alignment: int) -> dict[str, SourceTensor]:
    tensors: dict[str, SourceTensor] = {}
    at = 0
    for info in sorted(infos, key=lambda i: (i.offset, i.name)):
        inside = f"tensor {quoted(info.name)}"
        if info.name in tensors:
            raise CheckpointError(place(path, inside), expected="each name once", got="it twice", hint=_HINT)
        if info.offset != at:
            rule = f"data at byte {at} of the data, a multiple of {alignment} behind the tensor before"
            what = "not a multiple" if info.offset % alignment else "a gap" if info.offset > at else "an overlap"
            raise CheckpointError(place(path, inside), expected=rule, got=f"{info.offset}: {what}", hint=_HINT)
        if start + info.offset + info.n_bytes > state.n_bytes:
            end = start + info.offset + info.n_bytes
            raise CheckpointError(
                place(path, inside),
                expected=f"data within the file's {state.n_bytes} bytes",
                got=f"it ends at byte {end}",
                hint=_HINT,
            )
        tensors[info.name] = SourceTensor(
            info.name, info.dtype, info.shape, path, state, start + info.offset, info.n_bytes
        )
        at = _padded(info.offset + info.n_bytes, alignment)
    return tensors


def _check_end(cursor: _Cursor, tensors: dict[str, SourceTensor], start: int, alignment: int) -> None:
    last = max((t.offset + t.n_bytes for t in tensors.values()), default=min(start, cursor.n_bytes))
    n_left = cursor.n_bytes - last
    if n_left >= alignment:
        raise cursor.error(f"fewer than {alignment} bytes of padding behind the last tensor", f"{n_left} bytes")
    cursor.file.seek(last)
    if any(cursor.file.read(n_left)):
        raise cursor.error("padding of zeros behind the last tensor", "other bytes")
