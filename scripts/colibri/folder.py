# SPDX-License-Identifier: Apache-2.0
"""The packed folder: everything `colibri pack` writes for one checkpoint, board and quantisation.

model.bin            the image                      model_config.h        what the engine is compiled against
model.hex            the same as Intel HEX          model_tokenizer.json  the checkpoint's tokenizer
manifest.json        what was packed, and how       vectors.json          what the golden model says
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri.errors import ImageError, UsageError
from colibri.model import Generation

SCHEMA_VERSION = 1
IMAGE, HEX, CONFIG, TOKENIZER, MANIFEST, VECTORS, BOARD = (
    "model.bin",
    "model.hex",
    "model_config.h",
    "model_tokenizer.json",
    "manifest.json",
    "vectors.json",
    "board.toml",
)


@dataclass(frozen=True)
class Folder:
    """A packed folder that was read back. Paths are inside it; manifest and vectors are parsed when asked for."""

    path: Path
    manifest: dict[str, Any]

    @property
    def board_name(self) -> str:
        """Name of the board it was packed for."""
        return str(self.manifest["settings"]["board"])

    @property
    def quant(self) -> str:
        """Canonical spelling of the quantisation."""
        return str(self.manifest["settings"]["quant"])

    @property
    def generation(self) -> Generation:
        """The checkpoint's sampling defaults."""
        return Generation(**self.manifest["generation"])

    def vectors(self) -> dict[str, Any]:
        """vectors.json."""
        return _read_json(self.path / VECTORS)

    def tokenizer_json(self) -> bytes | None:
        """The tokenizer, where the checkpoint had one."""
        path = self.path / TOKENIZER
        return path.read_bytes() if path.exists() else None


def is_folder(path: Path) -> bool:
    """Whether `colibri pack` wrote this folder."""
    return (path / MANIFEST).is_file()


def read_folder(path: Path) -> Folder:
    """Open a packed folder. Raises UsageError where there is none, ImageError where it is damaged."""
    if not is_folder(path):
        raise UsageError(
            str(path),
            expected=f"a folder that `colibri pack` wrote, with {MANIFEST}",
            got="no such folder" if not path.exists() else f"no {MANIFEST} in it",
            hint=f"pack a checkpoint first: colibri pack CHECKPOINT -b BOARD -o {path}",
        )
    manifest = _read_json(path / MANIFEST)
    if manifest.get("schema_version") != SCHEMA_VERSION:
        raise ImageError(
            f"{path / MANIFEST}: schema_version",
            expected=str(SCHEMA_VERSION),
            got=repr(manifest.get("schema_version")),
            hint="pack the checkpoint again with this version of colibri",
        )
    image = path / IMAGE
    size = image.stat().st_size if image.exists() else None
    if size != manifest["image"]["bytes"]:
        raise ImageError(
            str(image),
            expected=f"{manifest['image']['bytes']} bytes, as {MANIFEST} says",
            got="no such file" if size is None else f"{size} bytes",
            hint="pack the checkpoint again",
        )
    return Folder(path, manifest)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ImageError(
            str(path), expected="the JSON that `colibri pack` wrote", got=str(error), hint="pack the checkpoint again"
        ) from error
    if not isinstance(value, dict):
        raise ImageError(
            str(path), expected="a JSON object", got=type(value).__name__, hint="pack the checkpoint again"
        )
    return value
