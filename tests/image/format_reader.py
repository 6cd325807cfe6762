# SPDX-License-Identifier: Apache-2.0
"""A reader of packed folders written from docs/FORMAT.md and docs/NUMERICS.md 5 alone: standard library, nothing of ours."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .format_layouts import LAYOUTS

HEADER = (
    ("magic", "8s"), ("format_version", "I"), ("header_bytes", "I"), ("image_bytes", "Q"), ("config_hash", "16s"),
    ("kernel_layout", "I"), ("weights_crc32", "I"), ("load_address", "Q"), ("n_layers", "I"), ("n_experts", "I"),
    ("top_k", "I"), ("hidden_size", "I"), ("vocab_size", "I"), ("max_seq", "I"), ("directory_offset", "I"),
    ("directory_entries", "I"), ("dense_offset", "Q"), ("dense_bytes", "Q"), ("dense_crc32", "I"),
    ("directory_crc32", "I"), ("quant", "88s"), ("name", "20s"), ("source_sha256", "32s"), ("header_crc32", "I"),
)  # fmt: skip
IN_LAYER = (
    "attn_norm attn.router.hidden attn.router.primary attn.router attn.router.correction attn.q_a attn.q_a_norm attn.q "
    "attn.k attn.v attn.kv_a attn.kv_a_norm attn.k_up attn.v_up attn.q_norm attn.k_norm attn.sinks attn.gate attn.o "
    "conv.in conv.taps conv.out attn_post_norm ffn_norm router.hidden router.primary router router.correction shared_gate "
    "shared_mix ffn ffn_post_norm"
)
KINDS = ("expert", "shared", "dense", "attention", "tokenizer")
ORDER = ("attention", "expert", "shared", "dense")
BLOCKS = ("experts.{}", "shared", "ffn", "attn.experts.{}")
ELEMENT_BYTES = {"f32": 4, "bf16": 2, "f16": 2}


def up(n: int, to: int) -> int:
    return (n + to - 1) // to * to


def snap(x: float) -> float:
    return 0.0 if abs(x) < 2.0**-40 else x


def f32(x: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


@dataclass
class Block:
    """A tensor: kind, group (0: the whole row), rows, cols, kernel layout, and where it is."""

    kind: str
    group: int
    rows: int
    cols: int
    layout: int
    offset: int = 0

    @property
    def row_bytes(self) -> int:
        """Of a float format, whose rows are in order in every layout."""
        return up(self.cols, 8) * ELEMENT_BYTES[self.kind]

    @property
    def bytes(self) -> int:
        if self.kind in ELEMENT_BYTES:
            return up(self.rows * self.row_bytes, 16)
        return LAYOUTS[self.layout].bytes(self.kind, self.group, self.rows, self.cols)


def block_of(entry: dict[str, Any], layout: int) -> Block:
    kind, _, group = entry["format"].partition(":")
    default = "32" if kind == "q4" else "row"
    group = group or default
    return Block(kind, 0 if group == "row" else int(group), *entry["shape"], layout)


class Reader:
    """model.bin and manifest.json of a folder. Every rule of FORMAT.md that a reader can check is asserted."""

    def __init__(self, folder: Path) -> None:
        self.image = image = (folder / "model.bin").read_bytes()
        self.manifest = json.loads((folder / "manifest.json").read_text())
        values = struct.unpack_from("<" + "".join(code for _, code in HEADER), image)
        self.header: dict[str, Any] = dict(zip((name for name, _ in HEADER), values, strict=True))
        h = self.header
        assert (h["magic"], h["format_version"], h["kernel_layout"] in LAYOUTS) == (b"COLIBRI\0", 2, True)
        assert (h["image_bytes"], len(image) % 4096, h["header_bytes"] % 4096) == (len(image), 0, 0)
        assert h["header_crc32"] == zlib.crc32(image[:252])
        assert h["weights_crc32"] == zlib.crc32(image[h["header_bytes"] :])
        assert h["dense_offset"] == h["header_bytes"]
        dense_end = h["dense_offset"] + h["dense_bytes"]
        assert h["dense_crc32"] == zlib.crc32(image[h["dense_offset"] : dense_end])
        end = h["directory_offset"] + 24 * h["directory_entries"]
        directory = image[h["directory_offset"] : end]
        assert h["directory_crc32"] == zlib.crc32(directory)
        assert h["header_bytes"] == up(end, 4096)
        assert not any(image[end : h["header_bytes"]])
        self.experts = list(struct.iter_unpack("<QIIHHI", directory))
        for offset, n_bytes, crc, *_ in self.experts:
            assert offset % 16 == n_bytes % 16 == 0
            assert offset >= dense_end
            assert crc == zlib.crc32(image[offset : offset + n_bytes])
        self.blocks = {entry["name"]: block_of(entry, h["kernel_layout"]) for entry in self.manifest["tensors"]}
        self._place()

    def _place(self) -> None:
        """Offsets from the order of section 2; the manifest's must be the same."""
        cursor = self.header["dense_offset"]
        for name in self.dense_order():
            cursor = self._put(name, cursor)
        self.selftest = struct.unpack_from("<8i8I", self.image, up(cursor, 16))
        assert up(cursor, 16) + 64 == self.header["dense_offset"] + self.header["dense_bytes"]
        places = [(layer, KINDS.index(kind), index) for layer, kind, index in self._owned()]
        self.tokenizer = self._take_tokenizer()
        assert places == [(layer, kind, index) for *_, layer, kind, index in self.experts]
        for offset, n_bytes, _, layer, kind, index in self.experts:
            block = BLOCKS[kind].format(index)
            cursor = offset
            for name in self._present(f"layers.{layer}.{block}.", "gate up down" if kind != 3 else "q o"):
                cursor = self._put(name, cursor)
            assert up(cursor, 16) == offset + n_bytes
        for entry in self.manifest["tensors"]:
            block = self.blocks[entry["name"]]
            assert (entry["offset"], entry["bytes"]) == (block.offset, block.bytes), entry["name"]

    def _take_tokenizer(self) -> bytes | None:
        """The tokenizer's tables, the last block; behind that are only zeros."""
        offset, n_bytes, _, *what = self.experts[-1]
        assert not any(self.image[offset + n_bytes :])
        is_one = what == [0, KINDS.index("tokenizer"), 0] and self.experts.pop()
        return self.image[offset : offset + n_bytes] if is_one else None

    def dense_order(self) -> list[str]:
        names = self._present("", "embed")
        for layer in range(self.header["n_layers"]):
            names += self._present(f"layers.{layer}.", IN_LAYER)
        tables = [name for name in self.blocks if name.startswith(("rope.", "temperature."))]
        tables.sort(key=lambda name: (name.startswith("temp"), "factor" in name, name))
        return [*names, *self._present("", "final_norm head"), *tables]

    def _present(self, prefix: str, names: str) -> list[str]:
        """Of each name what there is, in the order weight, bias, itself."""
        wanted = [f"{prefix}{name}{what}" for name in names.split() for what in (".weight", ".bias", "")]
        return [name for name in wanted if name in self.blocks]

    def _owned(self) -> list[tuple[int, str, int]]:
        """Layer, kind and index of every block that the tensors' names speak of, in the order of section 2."""
        found = set()
        for name in self.blocks:
            parts = name.split(".")
            for kind, block in zip(KINDS[:4], BLOCKS, strict=True):
                at = block.removesuffix(".{}").split(".")
                if parts[2 : 2 + len(at)] == at and len(parts) > 3 + len(at):
                    index = int(parts[2 + len(at)]) if "experts" in at else 0
                    found.add((int(parts[1]), ORDER.index(kind), index))
        return [(layer, ORDER[kind], index) for layer, kind, index in sorted(found)]

    def _put(self, name: str, cursor: int) -> int:
        self.blocks[name].offset = up(cursor, 16)
        return self.blocks[name].offset + self.blocks[name].bytes

    def values(self, name: str) -> list[list[float]]:
        """The value used for each element."""
        b = self.blocks[name]
        return [[self._element(b, r, c) for c in range(b.cols)] for r in range(b.rows)]

    def _element(self, b: Block, r: int, c: int) -> float:
        if b.kind not in ELEMENT_BYTES:
            m = memoryview(self.image)[b.offset : b.offset + b.bytes]
            q, s, multiplier = LAYOUTS[b.layout].element(m, b.kind, b.group, b.rows, b.cols, r, c)
            return snap(f32(q * (f32(multiplier * s) if b.kind == "q4" else s)))
        image, at = self.image, b.offset + r * b.row_bytes + c * ELEMENT_BYTES[b.kind]
        if b.kind == "f32":
            return float(struct.unpack_from("<f", image, at)[0])
        if b.kind == "bf16":
            return float(struct.unpack("<f", b"\0\0" + image[at : at + 2])[0])
        return snap(float(struct.unpack_from("<e", image, at)[0]))
