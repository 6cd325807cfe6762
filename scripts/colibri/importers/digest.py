# SPDX-License-Identifier: Apache-2.0
"""The identity of a checkpoint: one SHA-256 that does not depend on where it lies or how it is cut into files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from colibri.importers.safetensors import SourceTensor
from colibri.importers.strict_json import Json


def source_sha256(config: Mapping[str, Json], sources: Iterable[SourceTensor]) -> str:
    """Hash a config and all source tensors, in hexadecimal.

    The stream is, with u64 little-endian and each string as its u64 byte count and its UTF-8 bytes:

        string "colibri-source-1"
        string config, as JSON with sorted keys, no white space and ASCII only
        u64    number of tensors
        each tensor, by ascending UTF-8 name:
            string name, string dtype (the container's spelling), u64 number of dimensions, u64 each,
            u64 byte count, bytes

    Not in it: file names, the cut into shards, the order and metadata of the container, tokenizer and generation defaults.
    """
    digest = hashlib.sha256()

    def u64(value: int) -> None:
        digest.update(value.to_bytes(8, "little"))

    def string(value: str) -> None:
        data = value.encode("utf-8")
        u64(len(data))
        digest.update(data)

    string("colibri-source-1")
    string(json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=True))
    ordered = sorted(sources, key=lambda t: t.name.encode("utf-8"))
    u64(len(ordered))
    for tensor in ordered:
        string(tensor.name)
        string(tensor.dtype)
        u64(len(tensor.shape))
        for dim in tensor.shape:
            u64(dim)
        u64(tensor.n_bytes)
        for piece in tensor.pieces():
            digest.update(piece)
    return digest.hexdigest()
