# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders: config.json, header, index and data spoilt together."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from colibri.importers import load
from colibri.importers.safetensors import BITS_OF_DTYPE, read_header
from importers import tiny_checkpoint as tc

from .choices import JSON, Choices, spoilt_bytes, spoilt_json

ORACLES = Path(__file__).parents[1] / "oracles" / "data"
_DTYPES = [dtype for dtype in BITS_OF_DTYPE if BITS_OF_DTYPE[dtype] >= 8]
_MAX_BYTES = 1 << 20


@cache
def seeds() -> list[Any]:
    return [tc.mixtral, tc.llama, tc.mistral, *sorted(path.parent for path in ORACLES.glob("*/model.safetensors"))]


@cache
def seed(i: int) -> tc.Tiny:
    found = seeds()[i]
    if callable(found):
        tiny: tc.Tiny = found()
        return tiny
    stored = read_header(found / "model.safetensors")
    tensors = {n: tc.Stored(t.dtype, t.shape, t.read_bytes(0, t.n_bytes)) for n, t in stored.items()}
    return tc.Tiny(json.loads((found / "config.json").read_text()), tensors)


@cache
def words() -> tuple[Any, ...]:
    """Keys and texts of every seed's config, besides what is odd anywhere."""
    found: set[str] = set()
    for i in range(len(seeds())):
        pending: list[Any] = [seed(i).config]
        while pending:
            value = pending.pop()
            if isinstance(value, dict):
                pending += [*value, *value.values()]
            elif isinstance(value, list):
                pending += value
            elif isinstance(value, str):
                found.add(value)
    return (*JSON, *sorted(found))


def spoil_config(c: Choices, config: dict[str, Any]) -> dict[str, Any]:
    if c.below(3) == 0:
        return {**config, str(c.pick(words())): c.pick(words())}
    spoilt = spoilt_json(c, config, words())
    assert isinstance(spoilt, dict)
    return spoilt


def spoil_tensors(c: Choices, tensors: dict[str, tc.Stored]) -> None:
    name = c.pick(sorted(tensors))
    old = tensors[name]
    match c.below(5):
        case 0:
            del tensors[name]
        case 1:
            tensors[name + c.pick((".x", "_scale_inv", "_blocks", "_scales", "_group_scales", "0"))] = tensors.pop(name)
        case 2:
            other = c.pick(sorted(tensors))
            tensors[name], tensors[other] = tensors[other], old
        case 3:
            dtype, shape = c.pick(_DTYPES), list(old.shape)
            if shape and c.below(2):
                shape[c.below(len(shape))] = c.pick((0, 1, 2, 3, 16, 40, 41, 128))
            n_bytes = math.prod(shape) * BITS_OF_DTYPE[dtype] // 8
            if n_bytes <= _MAX_BYTES:
                data = old.data * (1 + n_bytes // max(1, len(old.data))) or bytes(n_bytes)
                tensors[name] = tc.Stored(dtype, tuple(shape), data[:n_bytes])
        case _:
            at = c.below(len(old.data) + 1) // 4 * 4
            word = c.pick((b"\0\0\xc0\x7f", b"\0\0\x80\xff", b"\0\0\x80\x58", b"\1\0\0\0", b"\xff\xff\xff\x7e"))
            tensors[name] = tc.Stored(
                old.dtype, old.shape, (old.data[:at] + word + old.data[at + 4 :])[: len(old.data)]
            )


def written(c: Choices, tiny: tc.Tiny, folder: Path) -> None:
    """The folder, its container and its texts spoilt as bytes or as JSON."""
    header: Any = tc.safetensors_header(tiny.tensors)
    data = b"".join(t.data for t in tiny.tensors.values())
    shape = c.below(8)
    for _ in range(c.below(3)):
        header = spoilt_json(c, header)
    raw = tc.container(json.dumps(header).encode(), data)
    config = json.dumps(tiny.config).encode()
    if shape == 1:
        raw = spoilt_bytes(c, raw, 8 + len(json.dumps(header)))
    elif shape == 2:
        config = spoilt_bytes(c, config)
    elif shape == 3:
        sampling = {"eos_token_id": [2, 3], "do_sample": True, "temperature": 0.5, "top_k": 4, "top_p": 0.5}
        (folder / "generation_config.json").write_text(json.dumps(spoilt_json(c, sampling)))
    elif shape == 4:
        tc.write_shards(tiny, folder, 2)
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        tc.write_index(folder, spoilt_json(c, index))
        (folder / "config.json").write_bytes(config)
        return
    (folder / "config.json").write_bytes(config)
    (folder / "model.safetensors").write_bytes(raw)


def one(c: Choices, folder: Path) -> None:
    start = seed(c.below(len(seeds())))
    tiny = tc.Tiny(start.config, dict(start.tensors))
    for _ in c.steps():
        if c.below(3) == 0 and tiny.tensors:
            spoil_tensors(c, tiny.tensors)
        elif tiny.config:
            tiny.config = spoil_config(c, tiny.config)
    written(c, tiny, folder)
    for tensor in load(folder):
        assert tensor.read().shape == tensor.shape
