# SPDX-License-Identifier: Apache-2.0
"""Packed images: header fields and directory entries spoilt, the checksums made right again or not."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from colibri.image.format import ENTRY, FIELDS, FIXED_BYTES
from colibri.image.reader import read_image, verify_image
from engine.every_axis import EveryAxis

from .choices import Choices, spoilt_bytes

_AT = {field.name: field for field in FIELDS}


@cache
def seed() -> bytes:
    return EveryAxis().image


@dataclass
class Spoilt:
    raw: bytearray

    def get(self, name: str) -> int:
        field = _AT[name]
        return int.from_bytes(self.raw[field.offset : field.offset + field.bytes], "little")

    def put(self, name: str, value: int) -> None:
        field = _AT[name]
        low = value & (1 << 8 * field.bytes) - 1
        self.raw[field.offset : field.offset + field.bytes] = low.to_bytes(field.bytes, "little")

    def crc(self, start: int, n: int) -> int:
        return zlib.crc32(self.raw[start : start + n])

    def entry(self, c: Choices) -> None:
        """One number of one entry, or two entries exchanged."""
        start, n = self.get("directory_offset"), self.get("directory_entries")
        at = start + ENTRY.size * c.below(n)
        if not n or at + ENTRY.size > len(self.raw):
            return
        values = list(ENTRY.unpack_from(self.raw, at))
        which = c.below(len(values))
        limits = (64, 32, 32, 16, 16, 32)
        values[which] = c.number() & (1 << limits[which]) - 1
        ENTRY.pack_into(self.raw, at, *values)

    def repair(self, which: int) -> None:
        """Make the checksums of a set of bits right."""
        start, n = self.get("directory_offset"), self.get("directory_entries")
        if which & 1:
            for at in range(start, min(start + ENTRY.size * n, len(self.raw) - ENTRY.size), ENTRY.size):
                offset, n_bytes, _, *rest = ENTRY.unpack_from(self.raw, at)
                ENTRY.pack_into(self.raw, at, offset, n_bytes, self.crc(offset, n_bytes), *rest)
        if which & 2:
            self.put("directory_crc32", self.crc(start, ENTRY.size * n))
        if which & 4:
            self.put("dense_crc32", self.crc(self.get("dense_offset"), self.get("dense_bytes")))
        if which & 8:
            self.put("weights_crc32", self.crc(self.get("header_bytes"), len(self.raw)))
        if which & 16:
            self.raw[FIXED_BYTES - 4 : FIXED_BYTES] = struct.pack("<I", self.crc(0, FIXED_BYTES - 4))


def one(c: Choices, folder: Path) -> None:
    image = Spoilt(bytearray(seed()))
    repaired = 31 - c.below(32)
    for _ in c.steps():
        match c.below(4):
            case 0:
                image.put(c.pick(FIELDS).name, c.number())
            case 1:
                field = c.pick(FIELDS).name
                image.put(field, image.get(field) + c.pick((1, -1, 16, -16, 4096, -4096, 1 << 31)))
            case 2:
                image.entry(c)
            case _:
                image.raw = bytearray(spoilt_bytes(c, bytes(image.raw)))
        if len(image.raw) < FIXED_BYTES:
            break
        if c.below(4) == 1:
            image.put("image_bytes", len(image.raw))
    if len(image.raw) >= FIXED_BYTES:
        image.repair(repaired)
    path = folder / "model.bin"
    path.write_bytes(image.raw)
    verify_image(read_image(path))
