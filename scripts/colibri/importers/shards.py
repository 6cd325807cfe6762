# SPDX-License-Identifier: Apache-2.0
"""One set of tensors from one safetensors file, or from several with an index.

model.safetensors.index.json    {"metadata": {...}, "weight_map": {tensor: file}}
"""

from __future__ import annotations

from colibri.errors import CheckpointError
from colibri.importers.bind import IGNORED_SUFFIXES
from colibri.importers.files import read_whole
from colibri.importers.folder import Folder
from colibri.importers.safetensors import SourceTensor, read_header
from colibri.importers.strict_json import parse_object
from colibri.importers.text import described, place, quoted

MAX_INDEX_BYTES = 100_000_000

_HINT = "the index and the files belong to different checkpoints, or one is damaged; download them again"


def read_weight_map(folder: Folder, index: str) -> dict[str, str]:
    """Return tensor name to file name; raises CheckpointError where a file name is more than a name."""
    path = folder.file(index)
    weight_map = parse_object(read_whole(path, MAX_INDEX_BYTES), place(path), _HINT).get("weight_map")
    if not isinstance(weight_map, dict):
        raise CheckpointError(place(path, "weight_map"), expected="an object", got=described(weight_map), hint=_HINT)
    result: dict[str, str] = {}
    for tensor, file in weight_map.items():
        # A name with a separator could reach any file of the machine; a drive letter likewise.
        plain = isinstance(file, str) and file.endswith(".safetensors") and not set(file) & set("/\\:\0")
        if not isinstance(file, str) or not plain:
            raise CheckpointError(
                place(path, f"tensor {quoted(tensor)}"),
                expected="the plain name of a .safetensors file in the same folder",
                got=described(file),
                hint=_HINT,
            )
        result[tensor] = file
    return result


def read_single(folder: Folder, name: str) -> dict[str, SourceTensor]:
    """Return the tensors of one file."""
    return read_header(folder.file(name))


def read_sharded(folder: Folder, index: str) -> dict[str, SourceTensor]:
    """Return the tensors of all files of an index.

    Each must be in the file the index says and in no other. Raises CheckpointError naming the tensor and the file.
    """
    weight_map = read_weight_map(folder, index)
    where = place(folder.path / index)
    files = sorted(set(weight_map.values()))
    for file in files:
        if not folder.has(file):
            raise CheckpointError(
                place(folder.path / file), expected="a file, as the index says", got="no such file", hint=_HINT
            )
    tensors: dict[str, SourceTensor] = {}
    for file in files:
        for name, tensor in read_header(folder.file(file)).items():
            said = weight_map.get(name)
            if said is None and name.endswith(IGNORED_SUFFIXES):
                continue
            if said != file:
                home = "in no file" if said is None else f"in {quoted(said)}"
                raise CheckpointError(
                    tensor.where, expected=f"it {home}, as {where} says", got=f"it in {quoted(file)}", hint=_HINT
                )
            tensors[name] = tensor
    for name, file in weight_map.items():
        if name not in tensors:
            raise CheckpointError(
                place(folder.path / file),
                expected=f"tensor {quoted(name)}, as {where} says",
                got="no tensor of that name",
                hint=_HINT,
            )
    return tensors
