# SPDX-License-Identifier: Apache-2.0
"""GGUF files of the oracles: the framework's logits, once what a file cannot say is stated."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import gguf
import gguf_oracles
import numpy as np
import pytest

from colibri.errors import CheckpointError
from colibri.importers import load
from colibri.model import Model, Reading
from colibri.quantise import Policy, store
from colibri_sim.golden import GoldenModel

TOLERANCE = 2e-5  # NUMERICS section 11
LONG, SHORT = "rope_factors_long.weight", "rope_factors_short.weight"
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


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("deepseek", {"expert_weights_scale": 2.0}, "expert_weights_scale: expected 1, as this architecture has"),
        ("minimax_m2", {"expert_gating_func": gguf.ExpertGatingFuncType.SOFTMAX}, "expert_gating_func: expected 2"),
        ("hunyuan_v1_moe", {"expert_shared_feed_forward_length": 24}, "feed_forward_length: expected 20, as an expert"),
        ("hunyuan_v1_moe", {"expert_shared_count": 2}, "expert_shared_count: expected 1"),
        ("phimoe_longrope", {"tables": {LONG: (1.0,) * 5}}, f"{SHORT}: expected a tensor"),
        ("phimoe_longrope", {"tables": {LONG: (1.0,) * 5, SHORT: (1.0,) * 4}}, "short_factor: expected 5 positive"),
        (
            "mixtral",
            {"tables": {LONG: (1.0,) * 4, SHORT: (1.0,) * 4}},
            "expected rope_freqs, one table for all lengths",
        ),
    ],
)
def test_what_an_architecture_cannot_be_is_refused(
    name: str, changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.gguf"
    gguf_oracles.write(path, name, **changed)
    with pytest.raises(CheckpointError, match=message):
        load(path, Reading(None, gguf_oracles.FILES[name].stated))
