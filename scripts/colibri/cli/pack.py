# SPDX-License-Identifier: Apache-2.0
"""colibri pack: a checkpoint becomes a read-only image at a fixed address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from colibri.cli import options, render, workflow
from colibri.folder import read_folder
from colibri_sim.prompts import read_prompts


@click.command("pack")
@options.CHECKPOINT
@options.BOARD
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@options.settings_options
@click.option("--prompts", type=click.Path(path_type=Path), help="Prompts for vectors.json, one a line. [built-in]")
@options.JSON
def command(
    checkpoint: Path, board: str | None, output: Path, prompts: Path | None, as_json: bool, **values: Any
) -> None:
    """Pack CHECKPOINT for a board into model.bin, model.hex, model_config.h and what verification needs."""
    source = workflow.read_checkpoint(checkpoint, options.reading_from(values))
    settings = options.settings_from(values)
    target = workflow.board_for(board, source, settings)
    config = settings.apply(source.model.config)
    chosen = read_prompts(prompts, config, source.tokenizer) if prompts else ()
    plan = workflow.pack(source, target, settings, output, chosen)
    manifest = read_folder(output).manifest
    if as_json:
        render.document(
            {
                "folder": str(output),
                **{k: manifest[k] for k in ("name", "source", "settings", "config_hash", "image")},
                "plan": plan.to_json(),
            }
        )
        return
    print(f"{output}: {plan.layout.image_bytes:,} bytes, sha256 {manifest['image']['sha256']}")
