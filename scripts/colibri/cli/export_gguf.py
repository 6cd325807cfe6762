# SPDX-License-Identifier: Apache-2.0
"""colibri export-gguf: a checkpoint as a GGUF file for llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from colibri.cli import options, render, workflow
from colibri.export.gguf import FILE_TYPES, Type, export_gguf


@click.command("export-gguf")
@options.CHECKPOINT
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="File to write, ending in .gguf.")
@click.option(
    "--type", "type_", type=click.Choice(tuple(FILE_TYPES)), default="f32", show_default=True, help="Of matrices."
)
@options.reading_options
@options.JSON
def command(checkpoint: Path, output: Path, type_: Type, as_json: bool, **reading: Any) -> None:
    """Write CHECKPOINT as a GGUF file that llama.cpp reads; what its architectures cannot say is refused."""
    model = workflow.read_checkpoint(checkpoint, options.reading_from(reading)).model
    done = export_gguf(model, output, type_)
    if as_json:
        render.document(
            {
                "file": str(output),
                "architecture": done.architecture,
                "type": type_,
                "tensors": done.n_tensors,
                "bytes": done.n_bytes,
                "no_text": done.no_text,
            }
        )
        return
    print(f"{output}: {done.architecture}, {done.n_tensors} tensors, {done.n_bytes} bytes")
    if done.no_text is not None:
        print(f"no tokenizer in it: {done.no_text}")
