# SPDX-License-Identifier: Apache-2.0
"""The vector that colibri_selftest replays, as it lies in the image: token ids, and what the golden model says to them.

It lies with the weights, not in model_config.h: it is their answer, and other weights of the same shape need no new engine.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

POSITIONS = 8
UNUSED = -1
"""The id of a position that is not replayed: past the context, or past a value that leaves the range."""

_STRUCT = struct.Struct(f"<{POSITIONS}i{POSITIONS}I")
BYTES = _STRUCT.size


@dataclass(frozen=True)
class SelfTest:
    """Up to POSITIONS token ids, and the CRC-32 of the logits (little-endian float32) at each of them."""

    ids: tuple[int, ...]
    logits_crc32: tuple[int, ...]

    def encode(self) -> bytes:
        """Its BYTES in the image (docs/FORMAT.md 3)."""
        missing = POSITIONS - len(self.ids)
        return _STRUCT.pack(*self.ids, *[UNUSED] * missing, *self.logits_crc32, *[0] * missing)
