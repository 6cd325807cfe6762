# SPDX-License-Identifier: Apache-2.0
"""GGUF files of the oracles: the framework's logits, once what a file cannot say is stated."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import gguf_oracles
import numpy as np
import pytest

from colibri.errors import CheckpointError
from colibri.importers import load
from colibri.model import Model, Reading
from colibri.quantise import Policy, store
from colibri_sim.golden import GoldenModel

TOLERANCE = 2e-5  # NUMERICS section 11
NEVER_GUESSED = {"phimoe_longrope": "rope.factor"}


def logits(model: Model, ids: list[int]) -> np.ndarray:
    policy = Policy.parse("f32").resolve(model.config)
    golden = GoldenModel(model.config, cache(lambda name: store(model.tensors[name], policy.format_of(name))))
    return golden.forward(ids).logits


@pytest.mark.parametrize("name", gguf_oracles.FILES)
def test_logits_are_the_frameworks_once_what_the_file_omits_is_stated(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    gguf_oracles.write(path, name)
    stated = gguf_oracles.FILES[name].stated
    answers = np.load(gguf_oracles.ORACLES / name / "golden.npz")
    model = load(path, Reading(None, stated))
    found = logits(model, answers["ids"].tolist())[answers["positions"]]
    bound = TOLERANCE * np.abs(answers["logits"]).max()
    assert np.abs(found - answers["logits"]).max() <= bound
    assert model.tokenizer_json is None
    if name in NEVER_GUESSED:
        with pytest.raises(CheckpointError) as error:
            load(path)
        assert f"add --set {NEVER_GUESSED[name]}=" in error.value.hint
    elif stated:
        without = logits(load(path), answers["ids"].tolist())[answers["positions"]]
        assert np.abs(without - answers["logits"]).max() > bound, "a fact that changes nothing"
