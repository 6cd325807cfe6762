# SPDX-License-Identifier: Apache-2.0
"""The packed folder: everything `colibri pack` writes for one checkpoint, board and quantisation.

model.bin            the image                      model_config.h        what the engine is compiled against
model.hex            the same as Intel HEX          model_tokenizer.json  the checkpoint's tokenizer
model_tokenizer.bin  the tokenizer for the device, where it can be expressed there
manifest.json        what was packed, and how       vectors.json          what the golden model says
BOARD.toml           the board's description        origin.json           where the inputs lay

All but origin.json is the same on every machine; origin.json is for this one only and may be left out of a release.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from colibri.errors import ImageError, UsageError
from colibri.model import Generation, Reading

SCHEMA_VERSION = 1
IMAGE, HEX, CONFIG, TOKENIZER, DEVICE_TOKENIZER, MANIFEST, VECTORS, ORIGIN = (
    "model.bin",
    "model.hex",
    "model_config.h",
    "model_tokenizer.json",
    "model_tokenizer.bin",
    "manifest.json",
    "vectors.json",
    "origin.json",
)
BUILD = "build.json"
"""In a build's own folder: what was built, and how."""

_PACK_AGAIN = "pack the checkpoint again"

_MANIFEST_FIELDS: dict[str, type] = {
    "name": str,
    "source.sha256": str,
    "settings.board": str,
    "settings.quant": str,
    "settings.kv": str,
    "settings.max_seq": int,
    "settings.weights_address": int,
    "settings.expert_align": int,
    "settings.kernels": str,
    "reading": dict,
    "reading.set": dict,
    "config_hash": str,
    "image.bytes": int,
    "image.sha256": str,
    "plan.ram.parts": dict,
    "plan.offset_table_bytes": int,
    "plan.extra_axes": int,
    "plan.app_array_bytes": dict,
    "plan.macs_per_token": int,
    "plan.weight_bytes_read_per_token": int,
    "generation": dict,
    "eos_ids": list,
    "vocab_size": int,
}


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
    def kernels(self) -> str:
        """The kernel set that its image is laid out for."""
        return str(self.manifest["settings"]["kernels"])

    @property
    def text_bytes(self) -> int | None:
        """The longest prompt that the application `text` takes; None: the image has no tokenizer."""
        value = self.manifest["settings"].get("text_bytes")
        return None if value is None else int(value)

    @property
    def generation(self) -> Generation:
        """The checkpoint's sampling defaults."""
        return Generation(**self.manifest["generation"])

    @property
    def board_file(self) -> Path:
        """The board's description as it was when the folder was packed."""
        return self.path / f"{self.board_name}.toml"

    @property
    def reading(self) -> Reading:
        """What the user said against the checkpoint when it was packed."""
        said = self.manifest["reading"]
        family = said["family"]
        if family is not None and family.endswith(".toml"):
            family = str(self.origin("family") or family)
        return Reading(family, tuple(said["set"].items()))

    def vectors(self) -> dict[str, Any]:
        """vectors.json."""
        values = _read_json(self.path / VECTORS)
        _check_fields(self.path / VECTORS, values, {"schema_version": int, "trace": list, "prompts": list})
        return values

    def origin(self, name: Literal["checkpoint", "board", "family"]) -> Path | None:
        """Where an input lay when the folder was packed; None where the folder does not say."""
        if not (self.path / ORIGIN).exists():
            return None
        values = _read_json(self.path / ORIGIN)
        _check_fields(self.path / ORIGIN, values, {name: str})
        return Path(values[name])

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
        there = path.exists()
        command = f"{path} -b BOARD -o DIR" if there else f"CHECKPOINT -b BOARD -o {path}"
        raise UsageError(
            str(path),
            expected=f"a folder that `colibri pack` wrote, with {MANIFEST}",
            got=f"no {MANIFEST} in it" if there else "no such folder",
            hint=f"pack a checkpoint first: colibri pack {command}",
        )
    manifest = _read_json(path / MANIFEST)
    if manifest.get("schema_version") != SCHEMA_VERSION:
        raise ImageError(
            f"{path / MANIFEST}: schema_version",
            expected=str(SCHEMA_VERSION),
            got=repr(manifest.get("schema_version")),
            hint="pack the checkpoint again with this version of colibri",
        )
    _check_fields(path / MANIFEST, manifest, _MANIFEST_FIELDS)
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


def read_build(path: Path) -> dict[str, Any]:
    """build.json of a build's folder. Raises ImageError where it is damaged."""
    hint = "build it again: colibri build DIR"
    values = _read_json(path / BUILD, hint)
    _check_fields(path / BUILD, values, {"simulator": bool, "image_sha256": str}, hint)
    return values


def _check_fields(path: Path, values: dict[str, Any], fields: dict[str, type], hint: str = _PACK_AGAIN) -> None:
    """Each field (a path with dots) must be there and of its type. Raises ImageError naming the first that is not."""
    for field, kind in fields.items():
        value: Any = values
        for key in field.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, kind):
            raise ImageError(
                f"{path}: {field}",
                expected=f"what Colibri wrote, of type {kind.__name__}",
                got="nothing" if value is None else type(value).__name__,
                hint=f"the file was changed or is damaged: {hint}",
            )


def _read_json(path: Path, hint: str = _PACK_AGAIN) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ImageError(str(path), expected="the JSON that Colibri wrote", got=str(error), hint=hint) from error
    if not isinstance(value, dict):
        raise ImageError(str(path), expected="a JSON object", got=type(value).__name__, hint=hint)
    return value
