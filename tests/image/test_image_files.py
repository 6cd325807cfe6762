# SPDX-License-Identifier: Apache-2.0
"""The image as a file: Intel HEX, alignment, padding, damage."""

from __future__ import annotations

import contextlib
import itertools
import random
import struct
import zlib
from pathlib import Path

import pytest
from intelhex import IntelHex

from colibri.cli import main
from colibri.errors import ImageError
from colibri.folder import Folder
from colibri.image import format as image_format
from colibri.image.hexfile import write_hex
from colibri.image.reader import read_image, verify_image

from .format_reader import BLOCKS, Reader
from .packs import DEMO, ROOT, Packs


@pytest.mark.parametrize("board", ["mps3-an547", "mps2-an386"])
def test_hex_is_the_image_at_its_address_and_nothing_else(packs: Packs, board: str) -> None:
    folder = packs.folder("mixtral_odd", "q8", board)
    address = folder.manifest["settings"]["weights_address"]
    image = (folder.path / "model.bin").read_bytes()
    read = IntelHex(str(folder.path / "model.hex"))
    assert read.segments() == [(address, address + len(image))]
    assert read.tobinstr() == image
    assert Reader(folder.path).header["load_address"] == address


def test_hex_crosses_64_kib_and_keeps_gaps(tmp_path: Path) -> None:
    data = bytes(range(256)) * 513
    path = tmp_path / "x.hex"
    with path.open("wb") as file:
        write_hex(file, [(0x1000FFF3, data), (0x20000000, b"abc"), (0xFFFFFFF0, b"0123456789abcdef")])
    read = IntelHex(str(path))
    assert read.segments() == [(0x1000FFF3, 0x1000FFF3 + len(data)), (0x20000000, 0x20000003), (0xFFFFFFF0, 1 << 32)]
    assert read.tobinstr(0x1000FFF3, 0x1000FFF3 + len(data) - 1) == data
    assert read.tobinstr(0x20000000, 0x20000002) == b"abc"


def test_a_mapped_image_has_no_hex(packs: Packs) -> None:
    assert not (packs.folder("mixtral_odd").path / "model.hex").exists()


def test_generated_header_and_table_are_fresh() -> None:
    assert (ROOT / "firmware/include/colibri/image_format.h").read_text() == image_format.c_header()
    assert image_format.markdown_table() in (ROOT / "docs/FORMAT.md").read_text()


def experts(folder: Folder) -> list[tuple[int, int]]:
    return [(offset, n_bytes) for offset, n_bytes, *_ in Reader(folder.path).experts]


@pytest.mark.parametrize(
    ("option", "expected"), [("line", 32), ("sector", 4096), (16, 16), (1024, 1024), (65536, 65536)]
)
def test_experts_start_at_multiples_of_the_alignment(packs: Packs, option: object, expected: int) -> None:
    folder = packs.folder("mixtral_odd", "q8", "mps3-an547", expert_align=option)
    found = experts(folder)
    assert all(offset % expected == 0 for offset, _ in found)
    assert folder.manifest["settings"]["expert_align"] == expected
    # each at the first multiple: no more padding than asked for
    assert all(0 <= b - (a + n) < expected for (a, n), (b, _) in itertools.pairwise(found))


def test_smaller_alignment_makes_no_larger_image(packs: Packs) -> None:
    sizes = [
        packs.folder("mixtral_odd", "q8", "mps3-an547", expert_align=n).manifest["image"]["bytes"]
        for n in (16, 1024, 65536)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2]


def test_experts_are_contiguous_and_every_image_is_whole_pages(packs: Packs) -> None:
    for name, quant in (("mixtral_odd", "q8"), ("mixtral", "q4"), ("llama", "f32")):
        read = Reader(packs.folder(name, quant).path)
        assert len(read.image) % 4096 == 0
        for offset, n_bytes, _, layer, kind, index in read.experts:
            prefix = f"layers.{layer}.{BLOCKS[kind].format(index)}."
            inside = [b for name, b in read.blocks.items() if name.startswith(prefix)]
            assert len(inside) == 3
            assert offset == min(b.offset for b in inside)
            end = max(b.offset + b.bytes for b in inside)
            assert end <= offset + n_bytes < end + 16


def test_padding_of_the_demo_is_small(packs: Packs) -> None:
    for board in ("mps3-an547", "linux-x86_64"):
        folder = packs.folder(DEMO, "q8", board)
        padding = folder.manifest["plan"]["flash"]["parts"]["padding"]["bytes"]
        total = folder.manifest["image"]["bytes"]
        print(f"{board}: {padding} bytes of padding in an image of {total}")
        assert padding <= total // 100 + 8192


def spots(folder: Folder) -> dict[str, list[int]]:
    """Bytes of each part; `expected` part of the message to each."""
    read = Reader(folder.path)
    h = read.header
    (first, n_bytes, *_), (second, *_) = read.experts[0], read.experts[1]
    end = h["directory_offset"] + 24 * h["directory_entries"]
    last, last_bytes, *_ = read.experts[-1]
    dense_end = h["dense_offset"] + h["dense_bytes"]
    parts = {
        "header": list(range(256)),
        "expert directory": list(range(h["directory_offset"], end)),
        "zeros behind the directory": list(range(end, h["header_bytes"])),
        "dense": list(range(h["dense_offset"], dense_end)),
        "expert 0": list(range(first, first + n_bytes)),
        "last expert": list(range(last, last + last_bytes)),
        "padding": [
            *range(dense_end, first),
            *range(first + n_bytes, second),
            *range(last + last_bytes, len(read.image)),
        ],
    }
    assert all(parts.values())
    return parts


def test_any_flipped_bit_is_found(packs: Packs) -> None:
    folder = packs.private(packs.folder("mixtral_odd", "q8", "mps3-an547", expert_align=1024))
    path = folder.path / "model.bin"
    good = path.read_bytes()
    verify_image(read_image(path))
    rng = random.Random(1)
    missed = []
    for part, at in spots(folder).items():
        chosen = {at[0], at[-1], *rng.sample(at, min(25, len(at)))}
        for byte in sorted(chosen):
            damaged = bytearray(good)
            damaged[byte] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            with contextlib.suppress(ImageError):
                verify_image(read_image(path))
                missed.append((part, byte))
    assert not missed


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("expert directory", "the directory"),
        ("dense", "the dense part"),
        ("expert 0", "layer 0 expert 0"),
        ("last expert", "layer 1 expert 4"),
        ("padding", "the padding between the parts"),
    ],
)
def test_the_damaged_part_is_named(packs: Packs, part: str, named: str) -> None:
    folder = packs.private(packs.folder("mixtral_odd", "q8", "mps3-an547", expert_align=1024))
    path = folder.path / "model.bin"
    data = bytearray(path.read_bytes())
    data[spots(folder)[part][-1]] ^= 0x10
    path.write_bytes(data)
    with pytest.raises(ImageError) as caught:
        verify_image(read_image(path))
    assert caught.value.where == f"{path}: {named}"


def resealed(data: bytearray) -> bytes:
    """A header whose own CRC is right again."""
    data[252:256] = struct.pack("<I", zlib.crc32(bytes(data[:252])))
    return bytes(data)


def set_field(name: str, value: int) -> object:
    field = next(f for f in image_format.FIELDS if f.name == name)

    def change(data: bytearray) -> bytes:
        struct.pack_into("<" + field.code, data, field.offset, value)
        return resealed(data)

    return change


CASES = {
    "empty": lambda data: b"",
    "magic only": lambda data: bytes(data[:8]),
    "half a header": lambda data: bytes(data[:200]),
    "the header alone": lambda data: bytes(data[:256]),
    "half an image": lambda data: bytes(data[: len(data) // 2]),
    "a byte short": lambda data: bytes(data[:-1]),
    "a byte too many": lambda data: bytes(data) + b"\0",
    "another version": set_field("format_version", 3),
    "a directory past the header": set_field("directory_entries", 1 << 20),
    "a directory of 2**32 - 1 entries": set_field("directory_entries", (1 << 32) - 1),
    "a directory elsewhere": set_field("directory_offset", 264),
    "fewer directory entries": set_field("directory_entries", 1),
    "another image size": set_field("image_bytes", 4096),
    "the dense part past the end": set_field("dense_bytes", 1 << 40),
    "the dense part elsewhere": set_field("dense_offset", 1 << 40),
    "a header longer than the image": set_field("header_bytes", 0xFFFFF000),
}


@pytest.mark.parametrize("case", CASES)
def test_truncated_and_contradicting_images_are_refused(
    packs: Packs, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    data = bytearray((packs.folder("mixtral_odd").path / "model.bin").read_bytes())
    path = tmp_path / "model.bin"
    path.write_bytes(CASES[case](data))  # type: ignore[operator]  # a change of the bytes
    if path.read_bytes()[:8] == image_format.MAGIC:
        assert main.run(["inspect", str(path), "--verify"]) == 3
        captured = capsys.readouterr()
        assert "error:" in captured.err
        assert "Traceback" not in captured.err
    with pytest.raises(ImageError):
        verify_image(read_image(path))


@pytest.mark.parametrize("case", ["half an image", "a byte short", "a byte too many", "another image size"])
def test_a_wrong_length_is_said_before_anything_else(packs: Packs, tmp_path: Path, case: str) -> None:
    data = bytearray((packs.folder("mixtral_odd").path / "model.bin").read_bytes())
    path = tmp_path / "model.bin"
    path.write_bytes(CASES[case](data))  # type: ignore[operator]  # a change of the bytes
    with pytest.raises(ImageError, match=r"bytes, as its header says, got \d+ bytes"):
        read_image(path)


@pytest.mark.parametrize("content", [b"\x7fELF" + bytes(300), bytes(5000), b"colibri\0" + bytes(5000)])
def test_foreign_files_are_no_images(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(ImageError, match="an image that starts with"):
        read_image(path)


def test_inspect_accepts_what_pack_wrote(packs: Packs, capsys: pytest.CaptureFixture[str]) -> None:
    folder = packs.folder("mixtral_odd")
    assert main.run(["inspect", str(folder.path / "model.bin"), "--verify"]) == 0
    assert main.run(["inspect", str(folder.path), "--verify"]) == 0
    assert "checksums: hold" in capsys.readouterr().out
