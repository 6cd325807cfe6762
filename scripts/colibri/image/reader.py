# SPDX-License-Identifier: Apache-2.0
"""Reading an image back: its header, its directory, and whether every checksum holds."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from colibri.errors import ImageError
from colibri.image.format import BLOCK_KINDS, ENTRY, FIELDS, FIXED_BYTES, decode_header
from colibri.image.kernel_layouts import LAYOUTS, layout_with_id


@dataclass(frozen=True)
class Entry:
    """One block of the directory: where it is, how large, the CRC-32 of its bytes, and what it is.

    kind  of image.format.BLOCK_KINDS;  index: of the expert, otherwise 0
    """

    offset: int
    bytes: int
    crc32: int
    layer: int
    kind: str
    index: int

    def __str__(self) -> str:
        """Its name in messages."""
        if self.kind == "tokenizer":
            return "the tokenizer"
        named = {"expert": f"expert {self.index}", "attention": f"attention expert {self.index}"}
        return f"layer {self.layer} {named.get(self.kind, f'{self.kind} block')}"


@dataclass(frozen=True)
class Image:
    """An image's header and directory.

    fields   name -> value, texts decoded, hashes as hex
    kernels  the kernel set that it is laid out for
    """

    path: Path
    fields: dict[str, int | str]
    kernels: str
    experts: tuple[Entry, ...]

    def number(self, field: str) -> int:
        """The value of a numeric field."""
        value = self.fields[field]
        assert isinstance(value, int)
        return value


def read_image(path: Path) -> Image:
    """Read header and directory. Raises ImageError for what is no image, is cut short or contradicts itself."""
    try:
        with path.open("rb") as file:
            raw = file.read(FIXED_BYTES)
            values = decode_header(raw, str(path))
            numbers = {name: value for name, value in values.items() if isinstance(value, int)}
            _check_size(path, numbers)
            file.seek(numbers["directory_offset"])
            directory = file.read(ENTRY.size * numbers["directory_entries"])
    except OSError as error:
        raise ImageError(
            str(path), expected="a readable file", got=error.strerror or str(error), hint="check it"
        ) from error
    if zlib.crc32(directory) != numbers["directory_crc32"]:
        raise _damaged(path, "the directory", numbers["directory_crc32"], zlib.crc32(directory))
    experts = tuple(_entry(path, numbers, *raw) for raw in ENTRY.iter_unpack(directory))
    for entry in experts:
        if entry.offset + entry.bytes > numbers["image_bytes"]:
            raise ImageError(
                f"{path}: {entry}",
                expected=f"an end within {numbers['image_bytes']} bytes",
                got=str(entry.offset + entry.bytes),
                hint="pack the checkpoint again",
            )
    layout = layout_with_id(numbers["kernel_layout"])
    if layout is None:
        raise ImageError(
            f"{path}: kernel_layout",
            expected=f"a layout that this release knows: {', '.join(str(one.id) for one in LAYOUTS)}",
            got=str(numbers["kernel_layout"]),
            hint="pack the checkpoint again with this version of colibri",
        )
    return Image(path, {f.name: _shown(f.code, values[f.name]) for f in FIELDS}, layout.name, experts)


def verify_image(image: Image) -> None:
    """Recompute every CRC-32. Raises ImageError naming the first part that is damaged: an expert, the dense part, or the rest."""
    data = image.path.read_bytes()
    directory_end = image.number("directory_offset") + ENTRY.size * image.number("directory_entries")
    gap = data[directory_end : image.number("header_bytes")]
    if any(gap):
        at = directory_end + next(i for i, byte in enumerate(gap) if byte)
        raise ImageError(
            f"{image.path}: the gap behind the directory",
            expected="zeros",
            got=f"{data[at]:#04x} at byte {at}",
            hint="it is damaged: pack it again",
        )
    for entry in image.experts:
        crc = zlib.crc32(data[entry.offset : entry.offset + entry.bytes])
        if crc != entry.crc32:
            raise _damaged(image.path, str(entry), entry.crc32, crc)
    start = image.number("dense_offset")
    dense = zlib.crc32(data[start : start + image.number("dense_bytes")])
    if dense != image.number("dense_crc32"):
        raise _damaged(image.path, "the dense part", image.number("dense_crc32"), dense)
    weights = zlib.crc32(data[image.number("header_bytes") :])
    if weights != image.number("weights_crc32"):
        raise _damaged(image.path, "the padding between the parts", image.number("weights_crc32"), weights)


def _check_size(path: Path, numbers: dict[str, int]) -> None:
    size = path.stat().st_size
    if size != numbers["image_bytes"]:
        raise ImageError(
            str(path),
            expected=f"{numbers['image_bytes']} bytes, as its header says",
            got=f"{size} bytes",
            hint="the file is cut short or has something appended; pack the checkpoint again",
        )
    n = numbers
    rules = {
        "header_bytes": (n["header_bytes"] <= size, "a header inside the image"),
        "directory_offset": (n["directory_offset"] >= FIXED_BYTES, "a directory behind the header"),
        "directory_entries": (
            n["directory_offset"] + ENTRY.size * n["directory_entries"] <= n["header_bytes"]
            and n["directory_entries"] >= n["n_layers"],
            "at least one entry for each layer, inside the header",
        ),
        "dense_offset": (n["dense_offset"] == n["header_bytes"], f"{n['header_bytes']}, right behind the header"),
        "dense_bytes": (n["dense_offset"] + n["dense_bytes"] <= size, "a dense part inside the image"),
    }
    for field, (holds, expected) in rules.items():
        if not holds:
            raise ImageError(f"{path}: {field}", expected=expected, got=str(n[field]), hint="pack the checkpoint again")


def _entry(
    path: Path, numbers: dict[str, int], offset: int, n_bytes: int, crc: int, layer: int, kind: int, index: int
) -> Entry:
    if kind >= len(BLOCK_KINDS) or layer >= numbers["n_layers"]:
        raise ImageError(
            f"{path}: directory",
            expected=f"a kind of block below {len(BLOCK_KINDS)} and a layer below {numbers['n_layers']}",
            got=f"kind {kind}, layer {layer}",
            hint="pack the checkpoint again",
        )
    return Entry(offset, n_bytes, crc, layer, BLOCK_KINDS[kind], index)


def _damaged(path: Path, part: str, expected: int, got: int) -> ImageError:
    return ImageError(
        f"{path}: {part}", expected=f"CRC-32 {expected:#010x}", got=f"{got:#010x}", hint="it is damaged: pack it again"
    )


def _shown(code: str, value: int | bytes) -> int | str:
    if isinstance(value, int):
        return value
    return value.hex() if code in ("16s", "32s") else value.rstrip(b"\0").decode("utf-8", "replace")
