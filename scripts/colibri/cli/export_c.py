# SPDX-License-Identifier: Apache-2.0
"""colibri export-c: a packed model as C sources for a project of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from colibri.cli import options, render, workflow
from colibri.export import export_c
from colibri.folder import read_folder


@click.command("export-c")
@options.DIR
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@options.JSON
def command(folder: Path, output: Path, as_json: bool) -> None:
    """Write the packed folder DIR as C11 sources that need nothing else: engine, weights, CMake, PlatformIO, CMSIS-Pack."""
    packed = read_folder(folder)
    record = export_c(packed, workflow.board_of(packed), output)
    if as_json:
        render.document({"folder": str(output), **record})
        return
    print(f"{output}: {record['library']}, {len(record['files'])} files, image sha256 {record['image']['sha256']}")
