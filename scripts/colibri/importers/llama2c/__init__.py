# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of llama2.c: a header of seven numbers, then arrays; the tokenizer in a file of its own."""

from __future__ import annotations

from pathlib import Path

from colibri.importers.axes_check import check_axes
from colibri.importers.bind import bind
from colibri.importers.digest import source_sha256
from colibri.importers.llama2c.arrays import bindings, lay_out
from colibri.importers.llama2c.header import Header, read_header
from colibri.importers.llama2c.tokenizer import find_tokenizer
from colibri.importers.overrides import describe, override
from colibri.importers.text import place
from colibri.model import Model, Reading

__all__ = ["is_llama2c", "load_llama2c"]

BOS_ID, EOS_ID = 1, 2  # of every vocabulary of llama2.c


def is_llama2c(first_bytes: bytes) -> bool:
    """Whether a .bin file may be one: pickles and zip archives of pickles are not."""
    return not first_bytes.startswith((b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"))


def load_llama2c(path: Path, reading: Reading) -> Model:
    """Import a .bin file of version 0, 1 or 2, and the tokenizer beside it, where there is one of its vocabulary size.

    Raises CheckpointError; UsageError for what `reading` gets wrong.
    """
    header = read_header(path)
    sources = lay_out(path, header)
    config = header.config(BOS_ID, EOS_ID)
    check_axes(config)
    tensors, skipped = bind(config, bindings(header, config), sources, place(path))
    config = override(config, dict(reading.overrides), {})
    return Model(
        config=config,
        tensors=tensors,
        path=path,
        source_sha256=source_sha256(_identity(header), sources.values()),
        tokenizer_json=find_tokenizer(path, header.vocab_size),
        skipped=skipped,
        reading=reading,
        settings=describe(config),
    )


def _identity(header: Header) -> dict[str, int | bool]:
    return {"version": header.version, "n_heads": header.n_heads, "max_seq": header.max_seq, "tied": header.tied}
