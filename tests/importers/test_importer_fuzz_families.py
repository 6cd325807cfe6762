# SPDX-License-Identifier: Apache-2.0
"""Config and tensor table changed together, for every family: the answer is a model or one clear error."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
import tiny_checkpoint as tc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from colibri.errors import ColibriError
from colibri.importers import load
from colibri.importers.families import FAMILIES
from colibri.importers.safetensors import BITS_OF_DTYPE, read_header

ORACLES = Path(__file__).parents[1] / "oracles"
MAX_BYTES = 1 << 20

# One oracle a family, and the words that mean something somewhere.
BY_FAMILY = {
    load(folder).config.family: folder for folder in sorted(ORACLES.glob("*/*"), reverse=True) if folder.is_dir()
}
ODD: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, 4, 5, 7, 12, 40, 65536, -1, 2**31, 2**53, 0.0, 0.5, 1.5, -0.5, 1e-13, 1e9, 1e300),
    *(
        "",
        "8",
        "silu",
        "relu2",
        "yarn",
        "longrope",
        "dynamic",
        "full_attention",
        "conv",
        "group_limited_greedy",
        "linear",
    ),
    *(
        [],
        [0],
        [1, 1],
        [[2], [3]],
        ["conv", "conv"],
        {},
        {"rope_type": "yarn"},
        {"full_attention": {}},
        {"name": "gelu"},
    ),
]
DTYPES = [d for d in BITS_OF_DTYPE if BITS_OF_DTYPE[d] >= 8]


def paths(value: Any, start: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for key, item in items for p in [(*start, key), *paths(item, (*start, key))]]


def changed_config(config: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    config = copy.deepcopy(config)
    for _ in range(data.draw(st.integers(0, 2))):
        *outer, key = data.draw(st.sampled_from(paths(config)))
        at: Any = config
        for step in outer:
            at = at[step]
        new = data.draw(st.sampled_from([..., *ODD]))
        if new is ...:
            del at[key]
        else:
            at[key] = copy.deepcopy(new)
    return config


def changed_tensors(tensors: dict[str, tc.Stored], data: st.DataObject) -> dict[str, tc.Stored]:
    tensors = dict(tensors)
    for _ in range(data.draw(st.integers(0, 2))):
        name = data.draw(st.sampled_from(sorted(tensors)))
        stored = tensors[name]
        kind = data.draw(st.sampled_from(["drop", "rename", "shape", "dtype", "reverse", "swap"]))
        if kind == "drop":
            del tensors[name]
        elif kind == "rename":
            tensors[name + data.draw(st.sampled_from([".x", "_scale_inv", "_blocks", "0"]))] = tensors.pop(name)
        elif kind == "swap":
            other = data.draw(st.sampled_from(sorted(tensors)))
            tensors[name], tensors[other] = tensors[other], stored
        else:
            shape, dtype = list(stored.shape), stored.dtype
            if kind == "dtype":
                dtype = data.draw(st.sampled_from(DTYPES))
            elif kind == "reverse":
                shape.reverse()
            elif shape:
                shape[data.draw(st.integers(0, len(shape) - 1))] = data.draw(
                    st.sampled_from([0, 1, 2, 16, 20, 40, 41, 128])
                )
            n_bytes = math.prod(shape) * BITS_OF_DTYPE[dtype] // 8
            if n_bytes <= MAX_BYTES:
                repeated = stored.data * (1 + n_bytes // max(1, len(stored.data))) or bytes(n_bytes)
                tensors[name] = tc.Stored(dtype, tuple(shape), repeated[:n_bytes])
    return tensors


def test_every_family_is_here() -> None:
    assert set(BY_FAMILY) == set(FAMILIES)


@pytest.mark.parametrize("family", sorted(BY_FAMILY))
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_config_and_tensors_changed_together(
    family: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = BY_FAMILY[family]
    stored = {
        name: tc.Stored(t.dtype, t.shape, t.read_bytes(0, t.n_bytes))
        for path in sorted(folder.glob("*.safetensors"))
        for name, t in read_header(path).items()
    }
    config = changed_config(json.loads((folder / "config.json").read_text()), data)
    copied = tc.Tiny(config, changed_tensors(stored, data)).write(tmp_path_factory.getbasetemp() / "changed")
    try:
        model = load(copied)
        for tensor in model:
            assert tensor.read().shape == tensor.shape
    except ColibriError as caught:
        error = caught
    else:
        return
    assert str(error).isprintable()
    assert error.hint
