# SPDX-License-Identifier: Apache-2.0
"""Opening files that are not trusted: regular ones only, bounded, unchanged between two looks.

Files are opened for each read and read with explicit offsets: a checkpoint of thousands of tensors holds no descriptor
open, and a file cut short underneath is an error here where a memory map would be a signal.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from colibri.errors import CheckpointError
from colibri.importers.text import place

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class FileState:
    """What tells that a file is still the one that was looked at before."""

    n_bytes: int
    modified_ns: int
    inode: int


def cannot_read(path: Path, reason: OSError | ValueError) -> CheckpointError:
    """Return the error for a path the system refuses."""
    got = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return CheckpointError(
        place(path), expected="a readable file", got=got.lower(), hint="check the path and its permissions"
    )


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, FileState]]:
    """Open a regular file for reading.

    Raises CheckpointError where it is missing, not permitted or not a regular file, also while it is being read.
    """
    try:
        # Looked at before it is opened: opening a FIFO would wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise CheckpointError(
                place(path), expected="a regular file", got="another kind", hint="give a checkpoint's file or folder"
            )
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            yield file, FileState(status.st_size, status.st_mtime_ns, status.st_ino)
    except (OSError, ValueError) as e:
        raise cannot_read(path, e) from e


def read_whole(path: Path, max_bytes: int) -> bytes:
    """Read a file of at most `max_bytes`; raises CheckpointError as `opened` does, or where it is larger."""
    with opened(path) as (file, state):
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise CheckpointError(
            place(path),
            expected=f"at most {max_bytes} bytes",
            got=f"{max(state.n_bytes, len(data))} bytes",
            hint="this is not the file it is named after",
        )
    return data


def read_range(path: Path, state: FileState, start: int, n_bytes: int) -> Iterator[bytes]:
    """Yield bytes [start, start + n_bytes) in pieces; raises CheckpointError where the file is no longer `state`."""
    with opened(path) as (file, now):
        if now != state:
            raise _changed(path)
        file.seek(start)
        left = n_bytes
        while left:
            piece = file.read(min(left, _CHUNK_BYTES))
            if not piece:
                raise _changed(path)
            left -= len(piece)
            yield piece


def _changed(path: Path) -> CheckpointError:
    return CheckpointError(
        place(path),
        expected="the file to stay as it was",
        got="it changed while being read",
        hint="wait until nothing writes to it, and start again",
    )
