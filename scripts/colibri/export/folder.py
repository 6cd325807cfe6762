# SPDX-License-Identifier: Apache-2.0
"""A packed folder as C sources that need nothing else: engine, configuration, weights, and what build systems ask for.

The same packed folder gives the same bytes on every machine: no date, no path, no order but that of names.
"""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

from colibri.boards import Board
from colibri.build.firmware import sources
from colibri.build.toolchain import CONTRACT, NO_VECTORISE
from colibri.data import data_path
from colibri.export.templates import filled, pdsc_files
from colibri.folder import CONFIG, DEVICE_TOKENIZER, HEX, IMAGE, Folder
from colibri.output import replaced_folder

SCHEMA_VERSION = 1
RECORD = "export.json"

_SRC = Path("src")
_WEIGHTS = _SRC / "weights"


def export_c(folder: Folder, board: Board, out: Path) -> dict[str, Any]:
    """Write the exported folder, complete or as it was; returns what its export.json says. Raises OutputError."""
    with replaced_folder(out, RECORD) as work:
        for source, target in _copied(folder, board).items():
            (work / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, work / target)
        _write_generated(work, folder, board)
        files = sorted(path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file())
        record = {
            "schema_version": SCHEMA_VERSION,
            "name": folder.manifest["name"],
            "library": _package(folder),
            "settings": folder.manifest["settings"],
            "config_hash": folder.manifest["config_hash"],
            "image": folder.manifest["image"],
            "files": files,
        }
        (work / RECORD).write_text(json.dumps(record, indent=1) + "\n")
    return record


def _copied(folder: Folder, board: Board) -> dict[Path, Path]:
    """Every file that is copied as it is, and its place in the exported folder."""
    firmware = data_path("firmware")
    patterns = ["engine/*.h", "tokenizer/*.h", "kernels/*.h", "kernels/portable/*.h", f"kernels/{folder.kernels}/*.h"]
    found = [*sources(board, "lib", folder.kernels), *(path for pattern in patterns for path in firmware.glob(pattern))]
    copies = {path: _SRC / path.relative_to(firmware) for path in found}
    copies |= {path: _SRC / "colibri" / path.name for path in (firmware / "include" / "colibri").glob("*.h")}
    copies |= {
        folder.path / CONFIG: _SRC / CONFIG,
        folder.path / IMAGE: _WEIGHTS / IMAGE,
        firmware / "export" / "colibri_model.h": _SRC / "colibri_model.h",
        firmware / "export" / "main.c": Path("example/main.c"),
        firmware / "export" / "LICENSE": Path("LICENSE"),
    }
    for name in (HEX, DEVICE_TOKENIZER):
        if (folder.path / name).exists():
            copies[folder.path / name] = _WEIGHTS / name
    return copies


def _write_generated(work: Path, folder: Folder, board: Board) -> None:
    """What names the model: the weights' section, and the description for each build system."""
    prefix = folder.manifest["settings"]["prefix"]
    name, title = _id(folder), f"{folder.manifest['name']} as {folder.quant} for {board.name}"
    placed = board.image == "linked"
    values = {
        "ID": name,
        "SYMBOL": f"{prefix or 'colibri'}_weights",
        "IMAGE_BYTES": str(folder.manifest["image"]["bytes"]),
        "ADDRESS": f"{folder.manifest['settings']['weights_address']:#x}" if placed else "ALIGN(64)",
        "AFTER": f"colibri_{name}_before" if placed else ".",
        "HEX": ", model.hex for its address" if (work / _WEIGHTS / HEX).exists() else "",
        "PACKAGE": _package(folder),
        "VERSION": version("colibri-firmware"),
        "TITLE": title,
    }
    for template, target in {"weights.S": _WEIGHTS / "weights.S", "weights.ld": _WEIGHTS / "weights.ld"}.items():
        (work / target).write_text(filled(template, values), "utf-8")
    in_src = sorted(path.relative_to(work).as_posix() for path in (work / _SRC).rglob("*") if path.is_file())
    values["SOURCES"] = "\n".join(f"    {path}" for path in in_src if path.endswith((".c", ".S")))
    values["FILES"] = "\n".join(f"        {line}" for line in pdsc_files(in_src))
    for template in ("CMakeLists.txt", "library.properties", "README.md"):
        (work / template).write_text(filled(template, values), "utf-8")
    (work / f"Colibri.{_package(folder)}.pdsc").write_text(filled("pack.pdsc", values, xml=True), "utf-8")
    (work / "library.json").write_text(json.dumps(_platformio(values), indent=1) + "\n")


def _platformio(values: dict[str, str]) -> dict[str, Any]:
    return {
        "name": values["PACKAGE"],
        "version": values["VERSION"],
        "description": values["TITLE"],
        "license": "Apache-2.0",
        "frameworks": "*",
        "platforms": "*",
        "headers": "colibri_model.h",
        "build": {"includeDir": "src", "srcDir": "src", "flags": [*CONTRACT, *NO_VECTORISE["gcc"]]},
    }


def _id(folder: Folder) -> str:
    return str(folder.manifest["settings"]["prefix"] or "model")


def _package(folder: Folder) -> str:
    return f"colibri-{_id(folder)}"
