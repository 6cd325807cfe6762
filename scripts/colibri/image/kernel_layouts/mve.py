# SPDX-License-Identifier: Apache-2.0
"""Kernel layout 3, `mve`: what a Cortex-M55 reads with one pointer, 16 bytes at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.image.kernel_layouts.portable import PortableLayout, align_up, little_endian
from colibri.quantise import Format, Stored

BLOCK_ROWS = 8
STEP_BYTES = 16
"""One vector register."""


class MveLayout(PortableLayout):
    """Integer rows in blocks of 8, interleaved by steps of 16 bytes (docs/FORMAT.md 3)."""

    id = 3
    name = "mve"

    def row_bytes(self, format_: Format, cols: int) -> int:
        """A row's share of a block: whole steps, 16 columns of q8 or 32 of q4."""
        if not format_.is_integer:
            return super().row_bytes(format_, cols)
        return self.quant_bytes(format_, cols) // (2 if format_.kind == "q4" else 1)

    def quant_bytes(self, format_: Format, cols: int) -> int:
        """One byte a column of a whole number of steps."""
        return align_up(cols, 2 * STEP_BYTES if format_.kind == "q4" else STEP_BYTES)

    def data(self, stored: Stored) -> bytes:
        """For each block, for each step, 16 bytes of each of its rows."""
        if not stored.format.is_integer:
            return super().data(stored)
        padded = np.zeros((stored.rows, self.quant_bytes(stored.format, stored.cols)), np.int8)
        padded[:, : stored.cols] = stored.data
        if stored.format.kind == "q4":
            padded = _nibbles(padded)
        steps = padded.reshape(stored.rows, -1, STEP_BYTES)
        return b"".join(little_endian(block.swapaxes(0, 1)) for block in _blocks(steps))

    def scales(self, stored: Stored) -> bytes:
        """Scales of rows in order; of groups, and multipliers: for each block, for each group, one for each of its rows."""
        parts = [stored.scales, stored.multipliers]
        return b"".join(little_endian(block.T) for part in parts if part is not None for block in _blocks(part))


def _blocks(rows: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Eight rows each; the last block has what is left."""
    return [rows[i : i + BLOCK_ROWS] for i in range(0, len(rows), BLOCK_ROWS)]


def _nibbles(q: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Column i of a step in the low nibble of byte i, column 16 + i in the high one, two's complement."""
    halves = q.reshape(len(q), -1, 2, STEP_BYTES)
    packed: npt.NDArray[np.int8] = (halves[:, :, 0] & 0x0F) | (halves[:, :, 1] << 4)
    return packed.reshape(len(q), -1)
