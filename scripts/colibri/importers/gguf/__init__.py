# SPDX-License-Identifier: Apache-2.0
"""GGUF files: one container for weights, configuration and tokenizer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from colibri.combinations import contradictions
from colibri.errors import CheckpointError, UsageError
from colibri.importers.bind import bind
from colibri.importers.digest import source_sha256
from colibri.importers.gguf.facts import Facts
from colibri.importers.gguf.metadata import ARCHITECTURE
from colibri.importers.gguf.reading import bindings, find_architecture, read_config
from colibri.importers.gguf.shards import read_gguf
from colibri.importers.gguf.tokenizer import read_tokenizer
from colibri.importers.overrides import describe, override
from colibri.importers.text import place, quoted
from colibri.model import Model, Reading

__all__ = ["load_gguf"]


def load_gguf(path: Path, reading: Reading) -> Model:
    """Import a GGUF file, or the first of several; raises CheckpointError, and UsageError for what `reading` gets wrong."""
    if reading.family is not None:
        raise UsageError(
            "--family",
            expected="none for a GGUF file, whose general.architecture counts",
            got=quoted(reading.family),
            hint="state single facts with --set",
        )
    container = read_gguf(path)
    metadata, sources = container.metadata, container.tensors
    facts = Facts(metadata, metadata.text(ARCHITECTURE), sources, dict(reading.overrides))
    architecture = find_architecture(facts)
    config = read_config(facts, architecture)
    for problem in contradictions(config):
        raise CheckpointError(
            place(path), expected="axes that go together", got=problem, hint="no such model can be built"
        )
    bound = bindings(config, sources, architecture.names, facts.n_blocks()[1])
    tensors, skipped = bind(config, bound, sources, place(path))
    left = {key: text for key, text in facts.wanted.items() if key not in facts.stated}
    config = override(config, left, facts.stated, facts.needed)
    tokenizer = read_tokenizer(metadata, config.vocab_size)
    return Model(
        config=replace(config, bos_id=tokenizer.bos_id, eos_ids=tokenizer.eos_ids),
        tensors=tensors,
        path=path,
        source_sha256=source_sha256(metadata.identity(f"{facts.architecture}."), sources.values()),
        tokenizer_json=tokenizer.json,
        skipped={**skipped, **tokenizer.skipped},
        reading=reading,
        settings={**describe(config), **facts.stated},
    )
