# SPDX-License-Identifier: Apache-2.0
"""The image header, each field defined once.

The C header (firmware/include/colibri/image_format.h) and the table in docs/FORMAT.md are generated from here
(`python -m colibri.image.format c` and `... md`); a test fails when either is stale.
"""

from __future__ import annotations

import struct
import sys
import zlib
from dataclasses import dataclass

from colibri.errors import ImageError
from colibri.image.kernel_layouts import LAYOUTS
from colibri.image.selftest import POSITIONS

MAGIC = b"COLIBRI\0"
FORMAT_VERSION = 2
FIXED_BYTES = 256
"""Bytes of the fixed part of the header; the directory of blocks follows."""

PAGE_BYTES = 4096
"""The header and the whole image are multiples of this."""


@dataclass(frozen=True)
class Field:
    """One field: struct code, byte offset, meaning."""

    name: str
    code: str
    offset: int
    meaning: str

    @property
    def bytes(self) -> int:
        """Size of the field in bytes."""
        return struct.calcsize("<" + self.code)


def _fields() -> tuple[Field, ...]:
    layouts = ", ".join(f"{layout.id} `{layout.name}`" for layout in LAYOUTS)
    table = (
        ("magic", "8s", "`COLIBRI` and a zero byte"),
        ("format_version", "I", f"{FORMAT_VERSION}; a reader refuses any other"),
        (
            "header_bytes",
            "I",
            "bytes before the dense part: this header, the directory, zeros; a multiple of 4096",
        ),
        ("image_bytes", "Q", "bytes of the whole image, a multiple of 4096"),
        ("config_hash", "16s", "first 16 bytes of the SHA-256 of the canonical configuration (section 4)"),
        ("kernel_layout", "I", f"how matrices are laid out for the kernels: {layouts} (section 3)"),
        ("weights_crc32", "I", "CRC-32 (IEEE, as zlib) of bytes [header_bytes, image_bytes)"),
        ("load_address", "Q", "address the image was packed for; 0: any"),
        ("n_layers", "I", "layers"),
        ("n_experts", "I", "experts of a feed-forward, the most of any layer; 0: all layers are dense"),
        ("top_k", "I", "of these used per token, the most of any layer; 0: all layers are dense"),
        ("hidden_size", "I", "elements of the residual stream"),
        ("vocab_size", "I", "rows of the embedding"),
        ("max_seq", "I", "context length in tokens"),
        ("directory_offset", "I", "where the directory of blocks starts"),
        ("directory_entries", "I", "blocks: experts, shared and dense ones, layer by layer; the tokenizer"),
        ("dense_offset", "Q", "where the dense part starts"),
        ("dense_bytes", "Q", "its size; the first block starts at or after its end"),
        ("dense_crc32", "I", "CRC-32 of the dense part"),
        ("directory_crc32", "I", "CRC-32 of the directory"),
        ("quant", "88s", "quantisation, canonical spelling, UTF-8, zero-padded"),
        ("name", "20s", "model name, UTF-8, cut to 20 bytes, zero-padded"),
        ("source_sha256", "32s", "SHA-256 of the source checkpoint"),
        ("header_crc32", "I", "CRC-32 of bytes [0, 252)"),
    )
    fields = []
    offset = 0
    for name, code, meaning in table:
        fields.append(Field(name, code, offset, meaning))
        offset += fields[-1].bytes
    assert offset == FIXED_BYTES, offset
    return tuple(fields)


FIELDS = _fields()
_STRUCT = struct.Struct("<" + "".join(f.code for f in FIELDS))

ENTRY = struct.Struct("<QIIHHI")
"""Directory entry: u64 offset in the image, u32 bytes, u32 CRC-32 of those bytes, u16 layer, u16 kind, u32 index."""

BLOCK_KINDS = ("expert", "shared", "dense", "attention", "tokenizer")
"""What a block is, by its number in the directory: an expert, a layer's shared or dense block, an expert of the attention; the
tokenizer's tables, which belong to no layer."""


def encode_header(values: dict[str, int | bytes]) -> bytes:
    """The 256 fixed bytes; magic, format_version and header_crc32 are filled in here."""
    full = {"magic": MAGIC, "format_version": FORMAT_VERSION, "header_crc32": 0, **values}
    raw = _STRUCT.pack(*(full[f.name] for f in FIELDS))
    return raw[:-4] + struct.pack("<I", zlib.crc32(raw[:-4]))


def decode_header(raw: bytes, where: str) -> dict[str, int | bytes]:
    """Field name -> value. Raises ImageError when it is no image of this version or its header is damaged."""
    if len(raw) < FIXED_BYTES or raw[: len(MAGIC)] != MAGIC:
        raise ImageError(
            where,
            expected=f"an image that starts with {MAGIC!r}",
            got=f"{raw[: len(MAGIC)]!r}",
            hint="give the model.bin that `colibri pack` wrote",
        )
    values: dict[str, int | bytes] = dict(zip((f.name for f in FIELDS), _STRUCT.unpack(raw[:FIXED_BYTES]), strict=True))
    if values["format_version"] != FORMAT_VERSION:
        raise ImageError(
            f"{where}: format_version",
            expected=str(FORMAT_VERSION),
            got=f"{values['format_version']!r}",
            hint="pack the checkpoint again with this version of colibri",
        )
    crc = zlib.crc32(raw[: FIXED_BYTES - 4])
    if crc != values["header_crc32"]:
        raise ImageError(
            f"{where}: header_crc32",
            expected=str(crc),
            got=f"{values['header_crc32']!r}",
            hint="the header is damaged; pack the checkpoint again",
        )
    return values


def c_header() -> str:
    """The text of firmware/include/colibri/image_format.h."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "/* Generated by `python -m colibri.image.format c`: do not edit. docs/FORMAT.md has the meanings. */",
        "#ifndef COLIBRI_IMAGE_FORMAT_H",
        "#define COLIBRI_IMAGE_FORMAT_H",
        "",
        f"#define COLIBRI_IMAGE_FORMAT_VERSION {FORMAT_VERSION}u",
        f"#define COLIBRI_HEADER_FIXED_BYTES {FIXED_BYTES}u",
        f'#define COLIBRI_HEADER_MAGIC "{MAGIC[:-1].decode()}" /* with its NUL */',
        f"#define COLIBRI_DIRECTORY_ENTRY_BYTES {ENTRY.size}u",
        f"#define COLIBRI_SELFTEST_POSITIONS {POSITIONS}u",
        "",
    ]
    lines += [f"#define COLIBRI_HEADER_OFFSET_{f.name.upper()} {f.offset}u" for f in FIELDS]
    return "\n".join([*lines, "", "#endif", ""])


def markdown_table() -> str:
    """The header table of docs/FORMAT.md."""
    kinds = {"I": "u32", "Q": "u64"}
    rows = ["| offset | bytes | type | field | meaning |", "|---|---|---|---|---|"]
    rows += [f"| {f.offset} | {f.bytes} | {kinds.get(f.code, 'bytes')} | `{f.name}` | {f.meaning} |" for f in FIELDS]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write({"c": c_header, "md": markdown_table}[sys.argv[1]]())
