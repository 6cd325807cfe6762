# SPDX-License-Identifier: Apache-2.0
"""Models split over several GGUF files: NAME-00001-of-00003.gguf and so on. The first has the metadata."""

from __future__ import annotations

import re
from pathlib import Path

from colibri.errors import CheckpointError
from colibri.importers.folder import open_folder
from colibri.importers.gguf.container import Container, read_container
from colibri.importers.gguf.limits import MAX_SHARDS
from colibri.importers.gguf.metadata import Metadata
from colibri.importers.text import place, quoted

_NO, _COUNT, _N_TENSORS = "split.no", "split.count", "split.tensors.count"
_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")
_HINT = "put all parts of the model into one folder, under the names they were written with, and give the first"


def read_gguf(path: Path) -> Container:
    """Read a file, and the others that the model is split over; raises CheckpointError."""
    first = read_container(path)
    count = _count(first.metadata)
    if count == 1:
        return first
    match = _NAME.fullmatch(path.name)
    no = _number(first.metadata)
    if match is None or int(match[3]) != count or int(match[2]) != 1 or no != 0:
        raise CheckpointError(
            place(path),
            expected=f"the first of {count} parts, NAME-00001-of-{count:05d}.gguf",
            got=f"part {no + 1} under the name {quoted(path.name)}",
            hint=_HINT,
        )
    folder = open_folder(path.parent)
    tensors = dict(first.tensors)
    for n in range(1, count):
        name = f"{match[1]}-{n + 1:05d}-of-{count:05d}.gguf"
        part = read_container(folder.file(name))
        if (_count(part.metadata), _number(part.metadata)) != (count, n):
            raise part.metadata.error(_NO, f"part {n + 1} of {count}", hint=_HINT)
        for tensor in part.tensors.values():
            if tensor.name in tensors:
                raise CheckpointError(tensor.where, expected="each tensor in one part", got="it in two", hint=_HINT)
            tensors[tensor.name] = tensor
    total = first.metadata.integer(_N_TENSORS, 0, 2**31 - 1)
    if total != len(tensors):
        raise first.metadata.error(_N_TENSORS, f"the {len(tensors)} tensors of all parts", hint=_HINT)
    return Container(first.metadata, tensors)


def _count(metadata: Metadata) -> int:
    return metadata.integer(_COUNT, 0, MAX_SHARDS, 1) or 1


def _number(metadata: Metadata) -> int:
    return metadata.integer(_NO, 0, MAX_SHARDS)
