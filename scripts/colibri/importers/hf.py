# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face folder: config.json, safetensors weights, and what may lie beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from colibri.combinations import contradictions
from colibri.errors import CheckpointError, UsageError
from colibri.importers.bind import bind
from colibri.importers.config import ConfigReader
from colibri.importers.described import read_family
from colibri.importers.digest import source_sha256
from colibri.importers.families import find_family
from colibri.importers.families.family import Family
from colibri.importers.files import read_whole
from colibri.importers.folder import CONFIG, Folder, open_folder, weight_file
from colibri.importers.generation import read_generation
from colibri.importers.overrides import YARN_TRUNCATE, boolean, changes_nothing, describe, override
from colibri.importers.quantised import refuse_quantised
from colibri.importers.rope_config import Truncate, yarn_truncate
from colibri.importers.safetensors import SourceTensor
from colibri.importers.shards import read_sharded, read_single, read_weight_map
from colibri.importers.strict_json import Json, json_value, parse_object
from colibri.importers.text import place, quoted
from colibri.model import Model, Reading

MAX_CONFIG_BYTES = 16 << 20
MAX_TOKENIZER_BYTES = 256 << 20

AS_IT_SAYS = Reading()
_CONFIG_HINT = "take config.json anew from where the checkpoint came from"


def load_folder(path: Path, file: str | None = None, *, reading: Reading = AS_IT_SAYS) -> Model:
    """Import a folder.

    file     the weights or the index to read, where the user named one
    reading  what the user says against config.json
    Raises CheckpointError; UsageError for what `reading` gets wrong.
    """
    folder = open_folder(path)
    weights = file or weight_file(folder)
    described = read_family(Path(reading.family)) if reading.family and reading.family.endswith(".toml") else None
    values = _read_config(folder, required=described is None)
    where = place(folder.path / CONFIG)
    sources = _read_tensors(folder, weights)
    refuse_quantised(where, values, sources)
    wanted = dict(reading.overrides)
    stated: dict[str, object] = {}
    if described is not None:
        config = described.config(values)
        bindings = described.bindings(config, sources)
        identity: Mapping[str, Json] = {"config": dict(values), "family": json_value(described.values)}
    else:
        found, identity = find_family(where, values, reading.family), values
        reader = _reader(where, values, found)
        truncate = yarn_truncate(reader)
        if truncate is not None:
            reader, stated[YARN_TRUNCATE] = _with_truncate(reader, truncate, wanted.pop(YARN_TRUNCATE, None))
        config = found.adapt(found.config(reader), sources)
        bindings = found.bindings(config, sources, reader)
    for problem in contradictions(config):
        raise CheckpointError(where, expected="axes that go together", got=problem, hint="no such model can be built")
    tensors, skipped = bind(config, bindings, sources, place(path / weights))
    config = override(config, wanted, stated)
    generation, bos_id, eos_ids = read_generation(folder, config)
    tokenizer = None
    if folder.has("tokenizer.json"):
        tokenizer = read_whole(folder.file("tokenizer.json"), MAX_TOKENIZER_BYTES)
    return Model(
        config=replace(config, bos_id=bos_id, eos_ids=eos_ids),
        tensors=tensors,
        path=path,
        source_sha256=source_sha256(identity, sources.values()),
        generation=generation,
        tokenizer_json=tokenizer,
        skipped=skipped,
        reading=reading,
        settings={**describe(config), **stated},
    )


def _read_config(folder: Folder, *, required: bool) -> dict[str, Json]:
    path = folder.file(CONFIG)
    if folder.has(CONFIG):
        return parse_object(read_whole(path, MAX_CONFIG_BYTES), place(path), _CONFIG_HINT)
    if not required:
        return {}
    raise CheckpointError(
        place(path),
        expected="a file",
        got="no such file",
        hint="a checkpoint's config.json lies beside it; a family file (--family MODEL.toml) can stand for it",
    )


def _with_truncate(reader: ConfigReader, truncate: Truncate, text: str | None) -> tuple[ConfigReader, bool]:
    """The config with another value of yarn's truncate, where --set says so, and the value that counts."""
    if text is None:
        return reader, truncate.value
    try:
        wanted = boolean(text)
    except ValueError:
        raise UsageError(
            f"--set {YARN_TRUNCATE}", expected="true or false", got=quoted(text), hint="choose one"
        ) from None
    if wanted == truncate.value:
        raise changes_nothing(YARN_TRUNCATE, text)
    return truncate.changed(reader, value=wanted), wanted


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
