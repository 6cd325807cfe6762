# SPDX-License-Identifier: Apache-2.0
"""Which files of a checkpoint folder are read, and that none of them leads out of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from colibri.errors import CheckpointError
from colibri.importers.files import cannot_read
from colibri.importers.text import place, quoted

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


@dataclass(frozen=True)
class Folder:
    """A checkpoint folder.

    path   as the user gave it, for messages
    roots  real folders that files may lie in
    """

    path: Path
    roots: tuple[Path, ...]

    def has(self, name: str) -> bool:
        """Whether there is an entry of this name, a dangling link included."""
        return os.path.lexists(self.path / name)

    def file(self, name: str) -> Path:
        """Return the path of a file of the folder; raises CheckpointError where a symbolic link leads outside."""
        path = self.path / name
        real = _real(path)
        if not any(real.is_relative_to(root) for root in self.roots):
            raise CheckpointError(
                place(path),
                expected="a file inside the checkpoint's folder",
                got="a symbolic link that leads out of it",
                hint="copy the file into the folder, or give the folder it lies in",
            )
        return path

    def names(self) -> list[str]:
        """Return all entries, sorted."""
        try:
            return sorted(entry.name for entry in self.path.iterdir())
        except (OSError, ValueError) as e:
            raise cannot_read(self.path, e) from e


def open_folder(path: Path) -> Folder:
    """Look at a folder; nothing is read yet."""
    real = _real(path)
    # The download cache of the Hugging Face hub keeps snapshots/REVISION/FILE as links into blobs/ beside it.
    blobs = (real.parent.parent / "blobs",) if real.parent.name == "snapshots" else ()
    return Folder(path, (real, *blobs))


def _real(path: Path) -> Path:
    # Not Path.resolve, which raises RuntimeError for a loop of links; opening one says so in the system's words.
    return Path(os.path.realpath(path))


def weight_file(folder: Folder) -> str:
    """Return the name of the index or of the only safetensors file; raises CheckpointError where it is not clear."""
    names = folder.names()
    found = [n for n in (INDEX, SINGLE) if n in names] or [n for n in names if n.endswith(".safetensors")]
    if len(found) == 1:
        return found[0]
    if found:
        raise CheckpointError(
            place(folder.path),
            expected=f"one of {INDEX}, {SINGLE} or a single .safetensors file",
            got=", ".join(quoted(n) for n in found[:3]),
            hint="give the path of the file that is meant",
        )
    pickles = [n for n in names if n.endswith(PICKLE_SUFFIXES)]
    if pickles:
        raise pickle_refused(folder.path / pickles[0])
    raise CheckpointError(
        place(folder.path),
        expected="a .safetensors file",
        got=f"{len(names)} other files" if names else "an empty folder",
        hint="give the folder that holds config.json and model.safetensors",
    )


def pickle_refused(path: Path) -> CheckpointError:
    """Return the error for weights in Python's own format."""
    return CheckpointError(
        place(path),
        expected="safetensors weights",
        got="a file that torch.load reads: a pickle, which runs code when loaded",
        hint="convert it where you trust it: save_pretrained(..., safe_serialization=True)",
    )
