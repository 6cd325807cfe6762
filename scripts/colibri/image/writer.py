# SPDX-License-Identifier: Apache-2.0
"""model.bin: the header, the dense part, every contiguous block, then the tokenizer, written in rising order."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from colibri.image import format as image_format
from colibri.image.matrix import matrix_bytes
from colibri.image.placement import Block, Expert, ImageLayout
from colibri.image.selftest import SelfTest
from colibri.image.tables import table_values
from colibri.model import F32Array, Model
from colibri.quantise import Format, Policy, Stored, store


@dataclass(frozen=True)
class Written:
    """What `write_image` can say once it is done. tensors: name -> SHA-256 of the canonical form."""

    tensors: dict[str, str]
    image_sha256: str


def write_image(
    out: IO[bytes],
    model: Model,
    policy: Policy,
    layout: ImageLayout,
    *,
    selftest: SelfTest,
    config_hash: bytes,
    load_address: int,
    name: str,
    tokenizer: bytes = b"",
) -> Written:
    """Write the whole image to a seekable file, header last: a half-written file has no magic.

    tokenizer  its tables, of the size that the layout has for them
    """
    crc = _Checksums(layout)
    tensors: dict[str, str] = {}
    out.write(bytes(layout.header_bytes))
    cursor = layout.header_bytes

    def write(offset: int, data: bytes) -> None:
        nonlocal cursor
        chunk = bytes(offset - cursor) + data
        crc.update(cursor, chunk)
        out.write(chunk)
        cursor += len(chunk)

    for block, stored in _stored(model, policy, layout):
        tensors[block.name] = stored.sha256()
        if cursor <= layout.selftest_offset < block.offset:  # the end of the dense part
            write(layout.selftest_offset, selftest.encode())
        write(block.offset, matrix_bytes(stored, block.matrix))
    if layout.tokenizer is not None:
        assert len(tokenizer) == layout.tokenizer.bytes
        write(layout.tokenizer.offset, tokenizer)
    write(layout.image_bytes, b"")
    header = _header(model, policy, layout, crc, config_hash=config_hash, load_address=load_address, name=name)
    out.seek(0)
    out.write(header)
    out.seek(0)
    digest = hashlib.sha256()
    while chunk := out.read(1 << 20):
        digest.update(chunk)
    return Written(tensors, digest.hexdigest())


def _stored(model: Model, policy: Policy, layout: ImageLayout) -> Iterator[tuple[Block, Stored]]:
    def float_values(name: str) -> F32Array:
        return store(model.tensors[name], Format("f32")).values()

    for block in layout.blocks:
        if block.part == "tables":
            values = table_values(model.config, block.name, float_values)[None]
            yield block, Stored(block.name, Format("f32"), 1, values.shape[1], values)
        else:
            yield block, store(model.tensors[block.name], policy.format_of(block.name))


class _Checksums:
    """CRC-32 of the weights, of the dense part and of each contiguous block, fed with consecutive chunks."""

    def __init__(self, layout: ImageLayout) -> None:
        self.weights = 0
        dense = (layout.header_bytes, layout.header_bytes + layout.dense_bytes)
        self._ranges = [dense] + [(e.offset, e.offset + e.bytes) for e in layout.experts]
        self._crcs = [0] * len(self._ranges)
        self._first = 0

    def update(self, offset: int, chunk: bytes) -> None:
        self.weights = zlib.crc32(chunk, self.weights)
        end = offset + len(chunk)
        for i in range(self._first, len(self._ranges)):
            start, stop = self._ranges[i]
            if start >= end:
                break
            part = memoryview(chunk)[max(start - offset, 0) : max(stop - offset, 0)]
            self._crcs[i] = zlib.crc32(part, self._crcs[i])
            if stop <= end:
                self._first = i + 1

    @property
    def dense(self) -> int:
        return self._crcs[0]

    @property
    def experts(self) -> list[int]:
        return self._crcs[1:]


def _header(
    model: Model,
    policy: Policy,
    layout: ImageLayout,
    crc: _Checksums,
    *,
    config_hash: bytes,
    load_address: int,
    name: str,
) -> bytes:
    config = model.config
    routers = [layer.ffn.router for layer in config.layers if layer.ffn.router]
    directory = b"".join(_entry(e, c) for e, c in zip(layout.experts, crc.experts, strict=True))
    fixed = image_format.encode_header(
        {
            "header_bytes": layout.header_bytes,
            "image_bytes": layout.image_bytes,
            "config_hash": config_hash,
            "kernel_layout": layout.kernels.id,
            "weights_crc32": crc.weights,
            "load_address": load_address,
            "n_layers": len(config.layers),
            "n_experts": max((r.n_experts for r in routers), default=0),
            "top_k": max((r.top_k for r in routers), default=0),
            "hidden_size": config.hidden_size,
            "vocab_size": config.vocab_size,
            "max_seq": config.max_seq,
            "directory_offset": image_format.FIXED_BYTES,
            "directory_entries": len(layout.experts),
            "dense_offset": layout.header_bytes,
            "dense_bytes": layout.dense_bytes,
            "dense_crc32": crc.dense,
            "directory_crc32": zlib.crc32(directory),
            "quant": str(policy).encode(),
            "name": name.encode()[:20],
            "source_sha256": bytes.fromhex(model.source_sha256),
        }
    )
    return fixed + directory + bytes(layout.header_bytes - len(fixed) - len(directory))


def _entry(block: Expert, crc: int) -> bytes:
    kind = image_format.BLOCK_KINDS.index(block.owner.kind)
    return image_format.ENTRY.pack(block.offset, block.bytes, crc, block.owner.layer, kind, block.owner.index)
