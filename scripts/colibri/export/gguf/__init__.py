# SPDX-License-Identifier: Apache-2.0
"""A model as a GGUF file for llama.cpp, read back before it counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from colibri.errors import CheckpointError, UsageError
from colibri.export.gguf.architectures import find_architecture, keys
from colibri.export.gguf.refusal import refused
from colibri.export.gguf.rotation import with_pairs
from colibri.export.gguf.tensors import FILE_TYPES, Type, items
from colibri.export.gguf.vocabulary import NO_VOCABULARY, special_ids, vocabulary
from colibri.export.gguf.writer import Value, write
from colibri.importers import load
from colibri.importers.gguf.architectures import ARCHITECTURES
from colibri.model import Model, ModelConfig
from colibri.output import replaced_file
from colibri.text.rules import Unsupported

__all__ = ["FILE_TYPES", "Exported", "Type", "export_gguf"]


@dataclass(frozen=True)
class Exported:
    """What was written. no_text: why the file has no tokenizer; None where it has one, or the checkpoint has none."""

    architecture: str
    n_tensors: int
    n_bytes: int
    no_text: str | None


def export_gguf(model: Model, target: Path, type_: Type = "f32") -> Exported:
    """Write a model as a GGUF file of version 3.

    Raises UsageError where no architecture of llama.cpp's says the model's axes: the file is read back by the importer, and an
    axis that comes back otherwise is refused by name. OutputError where it cannot be written.
    """
    if not target.name.endswith(".gguf"):
        raise UsageError("-o", expected="a file name that ends in .gguf", got=f"'{target.name}'", hint="rename it")
    architecture = find_architecture(model.config)
    text, no_text = _text(model)
    metadata: dict[str, Value] = {
        "general.architecture": architecture,
        "general.name": model.config.family,
        "general.file_type": FILE_TYPES[type_],
        **{f"{architecture}.{key}": value for key, value in keys(model.config, architecture).items()},
        **special_ids(model.config.bos_id, model.config.eos_ids),
        **text,
    }
    listed = list(items(model, architecture, type_))
    with replaced_file(target) as work:
        with work.open("wb") as file:
            write(file, metadata, listed)
        n_bytes = work.stat().st_size
        named = work.with_name(f"{work.name}.gguf")
        work.rename(named)
        try:
            _check(model.config, named, adjacent=ARCHITECTURES[architecture].adjacent)
        finally:
            named.rename(work)
    return Exported(architecture, len(listed), n_bytes, no_text)


def _text(model: Model) -> tuple[dict[str, Value], str | None]:
    if model.tokenizer_json is None:
        return NO_VOCABULARY, None
    try:
        return vocabulary(model.tokenizer_json, model.config.vocab_size), None
    except Unsupported as reason:
        return NO_VOCABULARY, str(reason)


def _check(config: ModelConfig, written: Path, *, adjacent: bool) -> None:
    """Compare the axes that the file means with the model's."""
    try:
        again = load(written).config
    except CheckpointError as error:
        raise refused(error.expected, error.got) from error
    meant = replace(with_pairs(config, adjacent=adjacent), family="", eos_ids=config.eos_ids[:2])
    for path, wanted, found in _differences(
        "", dataclasses.asdict(meant), dataclasses.asdict(replace(again, family=""))
    ):
        raise refused(f"{path} = {found} is what such a file means", f"{wanted}")


def _differences(path: str, wanted: Any, found: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(wanted, dict) and isinstance(found, dict) and wanted.keys() == found.keys():
        for key in wanted:
            yield from _differences(f"{path}.{key}".lstrip("."), wanted[key], found[key])
    elif isinstance(wanted, tuple) and isinstance(found, tuple) and len(wanted) == len(found):
        for i, pair in enumerate(zip(wanted, found, strict=True)):
            yield from _differences(f"{path}.{i}", *pair)
    elif wanted != found:
        yield path, wanted, found
