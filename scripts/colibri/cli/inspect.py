# SPDX-License-Identifier: Apache-2.0
"""colibri inspect: what is in an image, an ELF, a packed folder or a checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from colibri.audit.elf import Elf
from colibri.cli import inspect_checkpoint, options, render, workflow
from colibri.errors import UsageError
from colibri.folder import IMAGE, is_folder
from colibri.image.format import MAGIC
from colibri.image.reader import Image, read_image, verify_image
from colibri.importers import AS_IT_SAYS

_ELF_MAGIC = b"\x7fELF"


@click.command("inspect")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--verify", "recompute", is_flag=True, help="Recompute every checksum of an image.")
@options.reading_options
@options.JSON
def command(file: Path, recompute: bool, as_json: bool, **values: Any) -> None:
    """Show what is in FILE: an image, an ELF, a packed folder or a checkpoint."""
    path = file / IMAGE if is_folder(file) else file
    start = _start(path)
    reading = options.reading_from(values)
    if reading != AS_IT_SAYS and (start == MAGIC or start[:4] == _ELF_MAGIC):
        raise UsageError("--family, --set", expected="a checkpoint", got=str(file), hint="what was packed is as it is")
    if recompute and start != MAGIC:
        raise UsageError("--verify", expected="an image (model.bin)", got=str(file), hint="give the image itself")
    if start == MAGIC:
        image = read_image(path)
        if recompute:
            verify_image(image)
        found = _image(image, recompute)
    elif start[:4] == _ELF_MAGIC:
        found = _elf(Elf.read(path))
    else:
        found = inspect_checkpoint.found(workflow.read_checkpoint(file, reading).model)
    if as_json:
        render.document(found)
    else:
        print(_text(found))


def _start(path: Path) -> bytes:
    if not path.exists():
        raise UsageError(str(path), expected="a file or folder", got="nothing there", hint="check the path")
    if path.is_dir():
        return b""
    if not path.is_file():
        raise UsageError(str(path), expected="a file or folder", got="something else", hint="check the path")
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(str(path), expected="a readable file", got=str(error), hint="check its permissions") from error


def _image(image: Image, verified: bool) -> dict[str, Any]:
    experts = [dataclasses.asdict(entry) for entry in image.experts]
    return {
        "kind": "image",
        "header": image.fields,
        "kernels": image.kernels,
        "experts": experts,
        "checksums": "hold" if verified else "not checked",
    }


def _elf(elf: Elf) -> dict[str, Any]:
    return {"kind": "elf", "word_bits": elf.word_bits, "sections": [dataclasses.asdict(s) for s in elf.sections]}


def _text(found: dict[str, Any]) -> str:
    if found["kind"] == "image":
        header = render.table(("field", "value"), [(k, str(v)) for k, v in found["header"].items()])
        rows = [
            (e["layer"], e["kind"], e["index"], f"{e['offset']:#x}", e["bytes"], f"{e['crc32']:#010x}")
            for e in found["experts"]
        ]
        experts = render.table(("layer", "block", "index", "offset", "bytes", "crc32"), rows)
        return f"{header}\n\nkernels: {found['kernels']}\n\n{experts}\n\nchecksums: {found['checksums']}"
    if found["kind"] == "elf":
        sections = [
            (
                s["name"],
                f"{s['address']:#010x}",
                s["bytes"],
                "rw" if s["writable"] else "rx" if s["executable"] else "r",
            )
            for s in found["sections"]
        ]
        return render.table(("section", "address", "bytes", ""), sections)
    return inspect_checkpoint.text(found)
