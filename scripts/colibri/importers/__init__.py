# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of every supported kind, read as `colibri.model.Model`."""

from __future__ import annotations

import stat
from pathlib import Path

from colibri.errors import CheckpointError
from colibri.importers.files import cannot_read, opened
from colibri.importers.folder import CONFIG, PICKLE_SUFFIXES, pickle_refused
from colibri.importers.gguf import load_gguf
from colibri.importers.hf import AS_IT_SAYS, chosen_file, load_folder
from colibri.importers.llama2c import is_llama2c, load_llama2c
from colibri.importers.text import place
from colibri.model import Model, Reading

__all__ = ["AS_IT_SAYS", "load"]


def load(path: Path, reading: Reading = AS_IT_SAYS) -> Model:
    """Read a checkpoint.

    path     a Hugging Face folder (config.json, safetensors), or one of its files: config.json, a .safetensors file, the
             index of several; a .gguf file, or the first of several; or a .bin file of llama2.c
    reading  what the user says against it: a family, values of axes

    Headers, shapes and names are checked in full and every byte of weights is hashed; weights are converted, and their
    range checked, when a tensor is read. Raises CheckpointError, and UsageError for what `reading` gets wrong.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as e:
        raise cannot_read(path, e) from e
    if stat.S_ISDIR(mode):
        return load_folder(path, reading=reading)
    if path.name == CONFIG or path.name.endswith((".safetensors", ".safetensors.index.json")):
        return load_folder(path.parent, chosen_file(path), reading=reading)
    if path.name.endswith(".gguf"):
        return load_gguf(path, reading)
    if path.name.endswith(".bin") and is_llama2c(_first_bytes(path)):
        return load_llama2c(path, reading)
    if path.name.endswith(PICKLE_SUFFIXES):
        raise pickle_refused(path)
    raise CheckpointError(
        place(path),
        expected="a folder with config.json and .safetensors files, a .gguf file, or a .bin file of llama2.c",
        got="a file of another kind",
        hint="give the checkpoint's folder",
    )


def _first_bytes(path: Path) -> bytes:
    with opened(path) as (file, _):
        return file.read(8)
