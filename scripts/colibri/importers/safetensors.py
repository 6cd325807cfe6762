# SPDX-License-Identifier: Apache-2.0
"""The safetensors container: an untrusted header, checked in full before any tensor is touched.

    u64 little-endian N   N bytes of JSON   data

Each tensor is ``name: {dtype, shape, data_offsets: [begin, end]}``, offsets from the start of the data. Together the
intervals cover the data exactly: no gap, no overlap, no byte left over, so that no byte of the file is unaccounted for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from colibri.errors import CheckpointError
from colibri.importers.files import FileState, opened, read_range
from colibri.importers.strict_json import Json, parse_object
from colibri.importers.text import described, place, quoted, shape_text

MAX_HEADER_BYTES = 100_000_000  # the reference reader's limit
MAX_DIMS = 8

BITS_OF_DTYPE = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
}

_HINT = "the file is damaged or was not written by safetensors; download it again"

# What else is found under this name, by its first bytes.
_MAGICS = (
    (b"version https://git-lfs", "a Git LFS pointer", "fetch the file itself: git lfs pull"),
    (b"PK\x03\x04", "a zip archive, as torch.save writes", "convert it to safetensors; pickles run code when loaded"),
    (b"\x80\x02", "a Python pickle", "convert it to safetensors; pickles run code when loaded"),
    (b"\x80\x04", "a Python pickle", "convert it to safetensors; pickles run code when loaded"),
    (b"GGUF", "a GGUF file", "give it its own name, ending in .gguf"),
)


@dataclass(frozen=True)
class SourceTensor:
    """A tensor as the file has it.

    dtype   the container's spelling: F32, BF16, ...
    offset  of its first byte in the file
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    state: FileState
    offset: int
    n_bytes: int

    @property
    def where(self) -> str:
        """Name the file and the tensor, for messages."""
        return place(self.path, f"tensor {quoted(self.name)}")

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes in order, a chunk at a time."""
        return read_range(self.path, self.state, self.offset, self.n_bytes)

    def read_bytes(self, start: int, n_bytes: int) -> bytes:
        """Read `n_bytes` from byte `start` of the tensor on."""
        return b"".join(read_range(self.path, self.state, self.offset + start, n_bytes))


def read_header(path: Path) -> dict[str, SourceTensor]:
    """Read and check the header of one file; tensors by name, in the order of their data.

    Raises CheckpointError naming the file, and the tensor where there is one.
    """
    with opened(path) as (file, state):
        prefix = file.read(32)
        for magic, what, hint in _MAGICS:
            if prefix.startswith(magic):
                raise CheckpointError(place(path), expected="a safetensors file", got=what, hint=hint)
        if len(prefix) < 8:
            raise _bad(path, "a header length of 8 bytes", f"a file of {len(prefix)}")
        n_header = int.from_bytes(prefix[:8], "little")
        if n_header > MAX_HEADER_BYTES:
            raise _bad(path, f"a header of at most {MAX_HEADER_BYTES} bytes", f"one of {n_header}")
        if 8 + n_header > state.n_bytes:
            raise _bad(path, f"a header of {n_header} bytes", f"a file of {state.n_bytes}: it is cut short")
        file.seek(8)
        text = file.read(n_header)
    if not text.startswith(b"{"):
        raise _bad(path, "a header that begins with '{'", f"{text[:1]!r}")
    header = parse_object(text, place(path, "header"), _HINT)
    _check_metadata(path, header.pop("__metadata__", {}))
    tensors = [_tensor(path, state, 8 + n_header, name, entry) for name, entry in header.items()]
    tensors.sort(key=lambda t: (t.offset, t.n_bytes))
    _check_coverage(path, tensors, 8 + n_header, state.n_bytes)
    return {t.name: t for t in tensors}


def _bad(where: Path | str, expected: str, got: str) -> CheckpointError:
    return CheckpointError(where if isinstance(where, str) else place(where), expected=expected, got=got, hint=_HINT)


def _check_metadata(path: Path, metadata: Json) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _bad(place(path, "header"), "__metadata__ of strings only", "another value in it")


def _whole_numbers(value: Json) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    numbers = tuple(n for n in value if isinstance(n, int) and not isinstance(n, bool) and n >= 0)
    return numbers if len(numbers) == len(value) else None


def _tensor(path: Path, state: FileState, data_start: int, name: str, entry: Json) -> SourceTensor:
    where = place(path, f"tensor {quoted(name)}")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise _bad(where, "a name of Unicode characters", "half a surrogate pair") from None
    if not isinstance(entry, dict):
        raise _bad(where, "dtype, shape and data_offsets", described(entry))
    if set(entry) != {"dtype", "shape", "data_offsets"}:
        keys = ", ".join(quoted(k) for k in sorted(entry)[:5]) or "nothing"
        raise _bad(where, "dtype, shape and data_offsets and no other key", keys)
    dtype = entry["dtype"]
    if not isinstance(dtype, str) or dtype not in BITS_OF_DTYPE:
        raise _bad(where, "a dtype of the safetensors format", described(dtype))
    shape = _whole_numbers(entry["shape"])
    if shape is None or len(shape) > MAX_DIMS:
        raise _bad(where, f"a shape of at most {MAX_DIMS} whole numbers", "another value")
    offsets = _whole_numbers(entry["data_offsets"])
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _bad(where, "data_offsets of two whole numbers, begin <= end", "another value")
    n_bytes = offsets[1] - offsets[0]
    if n_bytes * 8 != math.prod(shape) * BITS_OF_DTYPE[dtype]:
        raise _bad(where, f"the bytes of {dtype} {shape_text(shape)}", f"data_offsets over {n_bytes} bytes")
    return SourceTensor(name, dtype, shape, path, state, data_start + offsets[0], n_bytes)


def _check_coverage(path: Path, tensors: list[SourceTensor], start: int, end: int) -> None:
    at = start
    for t in tensors:
        if t.offset + t.n_bytes > end:
            raise _bad(t.where, f"data within the file's {end} bytes", f"it ends at byte {t.offset + t.n_bytes}")
        if t.offset != at:
            what = "a gap" if t.offset > at else "an overlap"
            raise _bad(t.where, f"data from byte {at} of the file on", f"from byte {t.offset}: {what}")
        at += t.n_bytes
    if at != end:
        raise _bad(path, f"tensors up to the file's last byte, {end}", f"none after byte {at}")
