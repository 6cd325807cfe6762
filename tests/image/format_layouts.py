# SPDX-License-Identifier: Apache-2.0
"""Integer matrices in each kernel layout, read as docs/FORMAT.md 3 says: standard library, nothing of ours.

A layout answers bytes(kind, group, rows, cols) of a matrix (group 0: the whole row), and element(its bytes, kind, group, rows,
cols, r, c): the stored integer, its scale, and the multiplier of q4; also for the padding in whole rows and columns, whose extent
padded(kind, rows, cols) says.
"""

from __future__ import annotations

import struct


def up(n: int, to: int) -> int:
    return (n + to - 1) // to * to


class Portable:
    """1: rows in order, then scales, then multipliers."""

    @staticmethod
    def bytes(kind: str, group: int, rows: int, cols: int) -> int:
        groups = -(-cols // group) if group else 1
        return Portable.scales_at(kind, rows, cols) + rows * (4 * groups if kind == "q8" else 4 + groups)

    @staticmethod
    def scales_at(kind: str, rows: int, cols: int) -> int:
        return up(rows * up(cols, 8) // (1 if kind == "q8" else 2), 16)

    @staticmethod
    def element(m: memoryview, kind: str, group: int, rows: int, cols: int, r: int, c: int) -> tuple[int, float, int]:
        groups, g, scales = (
            -(-cols // group) if group else 1,
            c // group if group else 0,
            Portable.scales_at(kind, rows, cols),
        )
        at = r * up(cols, 8) + c
        if kind == "q8":
            return signed(m[at], 8), f32(m, scales + 4 * (r * groups + g)), 1
        return signed(m[at // 2] >> 4 * (at % 2) & 15, 4), f32(m, scales + 4 * r), m[scales + 4 * rows + r * groups + g]


class Armv7em:
    """2: blocks of four rows, in them groups, in those halfwords that hold two rows (q8) or four (q4)."""

    @staticmethod
    def bytes(kind: str, group: int, rows: int, cols: int) -> int:
        return up(up(rows, 4) // 4 * Armv7em.block_bytes(kind, group, cols), 16)

    @staticmethod
    def block_bytes(kind: str, group: int, cols: int) -> int:
        width = group or (cols if kind == "q8" else 512)
        groups = -(-cols // width)
        return up(cols, 8) * 4 + 16 * groups if kind == "q8" else up(cols, 8) * 2 + 4 * groups + 16

    @staticmethod
    def padded(kind: str, rows: int, cols: int) -> tuple[int, int]:
        return up(rows, 4), cols

    @staticmethod
    def element(m: memoryview, kind: str, group: int, rows: int, cols: int, r: int, c: int) -> tuple[int, float, int]:
        width, size = group or (cols if kind == "q8" else 512), Armv7em.block_bytes(kind, group, cols)
        g, i = divmod(c, width)
        here = min(width, cols - g * width)
        block, lane = r // 4 * size, r % 4
        if kind == "q8":
            start = block + g * (4 * width + 16)
            (half,) = struct.unpack_from("<h", m, start + i // 2 * 8 + lane // 2 * 4 + i % 2 * 2)
            even = signed(half & 255, 8)
            return (half - even) // 256 if lane % 2 else even, f32(m, start + 4 * up(here, 8) + 4 * lane), 1
        start = block + g * (2 * width + 4)
        (half,) = struct.unpack_from("<H", m, start + 2 * i)
        digit = half >> 4 * lane & 15
        scale = f32(m, block + size - 16 + 4 * lane)
        return signed(digit, 4) if lane == 3 else digit - 8, scale, m[start + 2 * up(here, 8) + lane]


class Mve:
    """3: blocks of eight rows, the last with what is left; in them steps of 16 bytes of each row."""

    @staticmethod
    def bytes(kind: str, group: int, rows: int, cols: int) -> int:
        groups = -(-cols // group) if group else 1
        return Mve.row_bytes(kind, cols) * rows + rows * (4 * groups if kind == "q8" else 4 + groups)

    @staticmethod
    def row_bytes(kind: str, cols: int) -> int:
        return up(cols, 16) if kind == "q8" else up(cols, 32) // 2

    @staticmethod
    def padded(kind: str, rows: int, cols: int) -> tuple[int, int]:
        return rows, up(cols, 16 if kind == "q8" else 32)

    @staticmethod
    def element(m: memoryview, kind: str, group: int, rows: int, cols: int, r: int, c: int) -> tuple[int, float, int]:
        size, groups = Mve.row_bytes(kind, cols), -(-cols // group) if group else 1
        g = min(c, cols - 1) // group if group else 0
        first, scales = r // 8 * 8, rows * size
        in_block = min(rows - first, 8)
        step, i = divmod(c, 16 if kind == "q8" else 32)
        byte = m[first * size + (step * in_block + r - first) * 16 + i % 16]
        of_group = first * groups + g * in_block + r - first
        if kind == "q8":
            return signed(byte, 8), f32(m, scales + 4 * of_group), 1
        return signed(byte >> i // 16 * 4 & 15, 4), f32(m, scales + 4 * r), m[scales + 4 * rows + of_group]


class Armv7m:
    """4: blocks of four rows (q8) or eight (q4), in them groups, in those a word for each column."""

    @staticmethod
    def bytes(kind: str, group: int, rows: int, cols: int) -> int:
        n_rows = 4 if kind == "q8" else 8
        return up(up(rows, n_rows) // n_rows * Armv7m.block_bytes(kind, group, cols), 16)

    @staticmethod
    def block_bytes(kind: str, group: int, cols: int) -> int:
        if kind == "q4":
            return up(cols, 8) * 4 + -(-cols // 32) * 8 + 32
        return up(cols, 8) * 4 + (-(-cols // group) if group else 1) * 16

    @staticmethod
    def padded(kind: str, rows: int, cols: int) -> tuple[int, int]:
        return up(rows, 4 if kind == "q8" else 8), cols

    @staticmethod
    def element(m: memoryview, kind: str, group: int, rows: int, cols: int, r: int, c: int) -> tuple[int, float, int]:
        n_rows, width = (4, group or cols) if kind == "q8" else (8, 32)
        size, bits = Armv7m.block_bytes(kind, group, cols), 32 // n_rows
        block, lane, (g, i) = r // n_rows * size, r % n_rows, divmod(c, width)
        start = block + g * (4 * width + (16 if kind == "q8" else 8))
        end = start + 4 * up(min(width, cols - g * width), 8)
        (word,) = struct.unpack_from("<I", m, start + 4 * i)
        q = (word >> bits * lane & (1 << bits) - 1) - (1 << bits - 1)
        return (
            (q, f32(m, end + 4 * lane), 1) if kind == "q8" else (q, f32(m, block + size - 32 + 4 * lane), m[end + lane])
        )


LAYOUTS = {1: Portable, 2: Armv7em, 3: Mve, 4: Armv7m}


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def f32(m: memoryview, at: int) -> float:
    return float(struct.unpack_from("<f", m, at)[0])
