# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face folder: config.json, safetensors weights, and what may lie beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from colibri.errors import CheckpointError
from colibri.importers.bind import bind
from colibri.importers.config import ConfigReader
from colibri.importers.digest import source_sha256
from colibri.importers.families import find_family
from colibri.importers.families.family import Family
from colibri.importers.files import read_whole
from colibri.importers.folder import CONFIG, Folder, open_folder, weight_file
from colibri.importers.generation import read_generation
from colibri.importers.quantised import refuse_quantised
from colibri.importers.safetensors import SourceTensor
from colibri.importers.shards import read_sharded, read_single, read_weight_map
from colibri.importers.strict_json import Json, parse_object
from colibri.importers.text import place
from colibri.model import Model

MAX_CONFIG_BYTES = 16 << 20
MAX_TOKENIZER_BYTES = 256 << 20

_CONFIG_HINT = "take config.json anew from where the checkpoint came from"


def load_folder(path: Path, file: str | None = None, *, family: str | None = None) -> Model:
    """Import a folder.

    file    the weights or the index to read, where the user named one
    family  read config.json as this family's, whatever model_type it names
    Raises CheckpointError; UsageError for an unknown family.
    """
    folder = open_folder(path)
    weights = file or weight_file(folder)
    config_path = folder.file(CONFIG)
    where = place(config_path)
    if not folder.has(CONFIG):
        raise CheckpointError(
            where, expected="a file", got="no such file", hint="a checkpoint's config.json lies beside it"
        )
    values = parse_object(read_whole(config_path, MAX_CONFIG_BYTES), where, _CONFIG_HINT)
    sources = _read_tensors(folder, weights)
    refuse_quantised(where, values, sources)
    found = find_family(where, values, family)
    reader = _reader(where, values, found)
    config = found.config(reader)
    bindings = found.bindings(config, sources.keys(), reader)
    tensors, skipped = bind(config, bindings, sources, place(path / weights))
    generation, bos_id, eos_ids = read_generation(folder, config)
    tokenizer = None
    if folder.has("tokenizer.json"):
        tokenizer = read_whole(folder.file("tokenizer.json"), MAX_TOKENIZER_BYTES)
    return Model(
        config=replace(config, bos_id=bos_id, eos_ids=eos_ids),
        tensors=tensors,
        path=path,
        source_sha256=source_sha256(values, sources.values()),
        generation=generation,
        tokenizer_json=tokenizer,
        skipped=skipped,
    )


def _reader(where: str, values: Mapping[str, Json], family: Family) -> ConfigReader:
    """The config as the family reads it: the file, or the language model's part of a larger model's."""
    reader = ConfigReader(where, values, family.defaults)
    if family.nested is None or family.nested[1] not in values:
        return reader
    text = reader.within(family.nested[1], family.defaults)
    if text is None:
        raise reader.error(family.nested[1], "an object")
    return text


def _read_tensors(folder: Folder, weights: str) -> dict[str, SourceTensor]:
    if weights.endswith(".index.json"):
        return read_sharded(folder, weights)
    return read_single(folder, weights)


def chosen_file(path: Path) -> str | None:
    """Return which file of its folder a path means: a file of the index means all of them, config.json what is there."""
    if path.name == CONFIG:
        return None
    folder = open_folder(path.parent)
    if path.name.endswith(".safetensors"):
        for index in (n for n in folder.names() if n.endswith(".safetensors.index.json")):
            if path.name in read_weight_map(folder, index).values():
                return index
    return path.name
