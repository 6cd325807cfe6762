# SPDX-License-Identifier: Apache-2.0
"""Every family's oracle: each source element is in one canonical tensor, once; what is missing or left over is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny_checkpoint as tc

from colibri.errors import CheckpointError
from colibri.importers import load
from colibri.importers.decode import to_float32
from colibri.importers.families import FAMILIES
from colibri.importers.safetensors import read_header

ORACLES = Path(__file__).parents[1] / "oracles"
FOLDERS = {p.name: p for p in sorted([*(ORACLES / "data").iterdir(), *(ORACLES / "encoder_decoder").iterdir()])}
NAMES = sorted(FOLDERS)
COPIES = ("mixtral_tied_both", "switch_full")
"""These have the embedding more than once."""
NOT_WEIGHTS = ("weight_noise.weight",)


def source_values(folder: Path) -> np.ndarray:
    values = []
    for path in folder.glob("*.safetensors"):
        for name, t in read_header(path).items():
            if not name.endswith(NOT_WEIGHTS):
                values.append(to_float32(t.read_bytes(0, t.n_bytes), t.dtype, (-1,)))
    return np.sort(np.concatenate(values))


def test_every_family_has_an_oracle() -> None:
    assert {load(FOLDERS[name]).config.family for name in NAMES} == set(FAMILIES)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in COPIES])
def test_every_element_is_used_once(name: str) -> None:
    # Random values: a part that is bound twice, or not at all, changes the sorted whole.
    model = load(FOLDERS[name])
    used = np.sort(np.concatenate([t.read().ravel() for t in model]))
    assert np.array_equal(used, source_values(FOLDERS[name]))


@pytest.mark.parametrize("name", sorted({load(FOLDERS[n]).config.family: n for n in reversed(NAMES)}.values()))
def test_a_tensor_too_few_or_too_many_is_named(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FOLDERS[name], folder)
    path = folder / "model.safetensors"
    tensors = {
        n: tc.Stored(t.dtype, t.shape, t.read_bytes(0, t.n_bytes))
        for n, t in read_header(FOLDERS[name] / "model.safetensors").items()
    }
    for left_out in [n for n in tensors if not n.endswith(NOT_WEIGHTS)]:
        path.write_bytes(tc.safetensors_bytes({n: t for n, t in tensors.items() if n != left_out}))
        with pytest.raises(CheckpointError) as caught:
            load(folder)
        assert left_out in str(caught.value)
    path.write_bytes(tc.safetensors_bytes({**tensors, "model.layers.0.extra.weight": tc.f32(np.ones(3))}))
    with pytest.raises(CheckpointError, match=r"extra\.weight"):
        load(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_too_many_is_missing(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FOLDERS[name], folder)
    config = json.loads((folder / "config.json").read_text())
    key = next(key for key in ("n_layers", "num_layers", "num_hidden_layers") if key in config)
    config[key] += 1
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError):
        load(folder)


@pytest.mark.parametrize(
    "name", ["qwen2", "qwen2_moe", "qwen3_moe", "mistral_swa", "gpt_oss", "llama4", "llama4_long", "afmoe"]
)
def test_lists_that_a_config_leaves_out_are_those_of_the_class(name: str, tmp_path: Path) -> None:
    # The class wrote them when it saved; published files often have none.
    folder = tmp_path / "copy"
    shutil.copytree(FOLDERS[name], folder)
    config = json.loads((folder / "config.json").read_text())
    for key in ("layer_types", "no_rope_layers", "moe_layers", "mlp_only_layers"):
        if key in config and config[key] != [0]:
            del config[key]
    (folder / "config.json").write_text(json.dumps(config))
    assert load(folder).config == load(FOLDERS[name]).config


def test_qwen2_moe_slides_in_every_other_of_the_first_layers(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FOLDERS["qwen2_moe"], folder)
    config = json.loads((folder / "config.json").read_text())
    del config["layer_types"]
    config |= {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}
    (folder / "config.json").write_text(json.dumps(config))
    assert [layer.mixer.window for layer in load(folder).config.layers] == [6, None]
