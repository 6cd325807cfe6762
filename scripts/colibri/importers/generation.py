# SPDX-License-Identifier: Apache-2.0
"""Sampling defaults and special ids: generation_config.json, and config.json where that is silent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from colibri.importers.config import ConfigReader
from colibri.importers.files import read_whole
from colibri.importers.folder import Folder
from colibri.importers.strict_json import parse_object
from colibri.importers.text import place
from colibri.model import Generation, ModelConfig

GENERATION = "generation_config.json"
MAX_BYTES = 1 << 20

_HINT = "correct the file, or remove it: the defaults then are temperature 1 and no cut"


def read_generation(folder: Folder, config: ModelConfig) -> tuple[Generation, int | None, tuple[int, ...]]:
    """Return the sampling defaults, the id to begin with and the ids that end a text.

    Only what the file says counts, not the defaults of the framework's class (which would cut at the 50 likeliest).
    do_sample false is temperature 0: the likeliest token always. So is a top_p of 0 as float32, which leaves only that token.
    """
    if not folder.has(GENERATION):
        return Generation(), config.bos_id, config.eos_ids
    path = folder.file(GENERATION)
    values = parse_object(read_whole(path, MAX_BYTES), place(path), _HINT)
    # null means "not said" in this file.
    said = {key: value for key, value in values.items() if value is not None}
    defaults = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
    reader = ConfigReader(place(path), said, defaults)
    generation = Generation(
        temperature=reader.number("temperature", 0.0, 1e6) if reader.flag("do_sample") else 0.0,
        top_k=reader.integer("top_k", 0, 2**31 - 1),
        top_p=reader.number("top_p", 0.0, 1.0),
    )
    if np.float32(generation.top_p) == 0:
        generation = replace(generation, temperature=0.0, top_p=1.0)
    bos_id, eos_ids = config.bos_id, config.eos_ids
    if reader.has("bos_token_id"):
        bos_id = reader.integer("bos_token_id", 0, config.vocab_size - 1)
    if reader.has("eos_token_id"):
        eos_ids = reader.ids("eos_token_id", config.vocab_size)
    return generation, bos_id, eos_ids
