# SPDX-License-Identifier: Apache-2.0
"""Damaged files: whatever is in them, the answer is a model or a ColibriError."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoint as tc

from colibri.errors import ColibriError
from colibri.importers import load

N_ROUNDS = 250

# What stands where something else should; strings that mean something to a careless reader.
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 7, 2**31, 2**53, 2**64, 10**400, 0.0, -0.5, 1.5, 1e9, 1e300, 5e-324,
    "", "8", "F32", "BF16", "silu", "llama3", "linear", "\x00", "\ud800", "../x", "x" * 5000,
    [], [0], [[]], {}, {"a": 1}, {"rope_type": "llama3"}, [1] * 300,
]  # fmt: skip


def flip_bytes(rng: random.Random, data: bytes, span: int) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(min(span, len(changed)))] = rng.randrange(256)
    return bytes(changed)


def cut_or_grow(rng: random.Random, data: bytes, span: int) -> bytes:
    at = rng.randrange(min(span, len(data)))
    return rng.choice([data[:at], data[at:], data[:at] + data[at + rng.randint(1, 9) :], data[:at] + data[at // 2 :]])


def replace_value(rng: random.Random, document: Any) -> Any:
    """Return a copy of a JSON document with one value, anywhere in it, replaced or removed."""
    document = copy.deepcopy(document)
    at, path = document, []
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = rng.choice(keys)
        path.append(key)
        if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.2:
            break
        at = at[key]
    if rng.random() < 0.15:
        del at[key]
    else:
        at[key] = rng.choice(ODD_VALUES)
    return document


def survives(folder: Path) -> bool:
    """Whether a checkpoint was read to its end; any error but ours propagates."""
    try:
        model = load(folder)
        for tensor in model:
            assert tensor.read().shape == tensor.shape
    except ColibriError as caught:
        error = caught
    else:
        return True
    assert str(error).isprintable()
    assert error.hint
    return False


@pytest.mark.parametrize("damage", [flip_bytes, cut_or_grow])
@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "generation_config.json"])
def test_damaged_bytes(tmp_path: Path, file: str, damage: Callable[[random.Random, bytes, int], bytes]) -> None:
    rng = random.Random(f"{file} {damage.__name__}")
    tiny = tc.mixtral()
    tiny.files["generation_config.json"] = (
        b'{"eos_token_id": [2, 3], "do_sample": true, "temperature": 0.5, "top_k": 4}'
    )
    path = tiny.write(tmp_path) / file
    good = path.read_bytes()
    # The header of the container, not its data, of which every bit pattern is a number.
    span = 8 + int.from_bytes(good[:8], "little") if file == "model.safetensors" else len(good)
    survived = 0
    for _ in range(N_ROUNDS):
        path.write_bytes(damage(rng, good, span))
        survived += survives(tmp_path)
    assert survived < N_ROUNDS / 2


@pytest.mark.parametrize("make", [tc.mixtral, tc.llama, tc.mistral])
def test_odd_config_values(tmp_path: Path, make: Callable[[], tc.Tiny]) -> None:
    rng = random.Random(make.__name__)
    tiny = make()
    tiny.config["rope_parameters"] = {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    folder = tiny.write(tmp_path)
    assert survives(folder)
    for _ in range(N_ROUNDS):
        config = tiny.config
        for _ in range(rng.randint(1, 2)):
            config = replace_value(rng, config)
        (folder / "config.json").write_text(json.dumps(config))
        survives(folder)


def test_odd_header_values(tmp_path: Path) -> None:
    rng = random.Random(3)
    tiny = tc.mixtral()
    folder = tiny.write(tmp_path)
    header, data = tc.safetensors_header(tiny.tensors), b"".join(t.data for t in tiny.tensors.values())
    for _ in range(N_ROUNDS):
        text = json.dumps(replace_value(rng, header)).encode()
        (folder / "model.safetensors").write_bytes(tc.container(text, data))
        survives(folder)


def test_odd_index_values(tmp_path: Path) -> None:
    rng = random.Random(4)
    folder = tmp_path / "folder"
    index = tc.write_shards(tc.mixtral(), folder, 3)
    for _ in range(N_ROUNDS):
        tc.write_index(folder, replace_value(rng, index))
        survives(folder)
