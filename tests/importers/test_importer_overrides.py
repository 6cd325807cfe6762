# SPDX-License-Identifier: Apache-2.0
"""--set: axes stated against the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from colibri.axes import Attention, LatentAttention, Renormalise
from colibri.errors import UsageError
from colibri.importers import load
from colibri.importers.overrides import describe, override
from colibri.model import ModelConfig, Reading

ORACLES = Path(__file__).parents[1] / "oracles" / "data"


def said(name: str, **wanted: str) -> ModelConfig:
    pairs = tuple((key.replace("__", "."), value) for key, value in wanted.items())
    return load(ORACLES / name, Reading(None, pairs)).config


def windows(config: ModelConfig) -> list[int | None]:
    return [layer.mixer.window for layer in config.layers if isinstance(layer.mixer, Attention | LatentAttention)]


def test_a_window_goes_to_every_layer_where_none_has_one() -> None:
    assert windows(said("mixtral", attention__sliding_window="7")) == [7, 7]


def test_a_window_goes_to_the_layers_that_have_one() -> None:
    assert windows(said("gpt_oss", attention__sliding_window="7")) == [7, None]
    assert windows(said("gpt_oss", attention__sliding_window="none")) == [None, None]


def test_a_model_of_other_axes_is_another_model() -> None:
    plain, changed = load(ORACLES / "mixtral"), said("mixtral", router__renormalise="true")
    assert changed != plain.config
    assert [layer.ffn.router.renormalise for layer in changed.layers if layer.ffn.router] == [Renormalise()] * 2


@pytest.mark.parametrize(
    ("name", "key", "text", "value"),
    [
        ("olmoe", "attention.clip", "2.5", 2.5),
        ("olmoe", "attention.clip", "none", None),
        ("llama4", "attention.chunk", "3", [3, 3, 3, None]),
        ("qwen3_moe", "router.renormalise", "false", "none"),
        ("qwen3_moe", "router.renormalise", "l2", "l2"),
        ("qwen3_moe", "router.score", "sigmoid", "sigmoid"),
        ("qwen3_moe", "experts.per_token", "1", 1),
        ("deepseek_v3", "router.group_score", "max", "max"),
        ("deepseek_v2_groups", "router.group_fill", "excluded", "excluded"),
        ("deepseek_v3", "router.scale", "1", 1.0),
        ("granitemoe", "residual", "1", 1.0),
        ("granitemoe", "logits_scale", "1", 1.0),
        ("ernie4_5_moe", "rope.pairing", "half", "half"),
        ("llama_gelu", "ffn.activation", "gelu_erf", "gelu_erf"),
        ("jetmoe", "experts.per_token", "2", 2),
    ],
)
def test_a_value_is_there_afterwards(name: str, key: str, text: str, value: Any) -> None:
    model = load(ORACLES / name, Reading(None, ((key, text),)))
    assert model.settings[key] == value
    assert describe(model.config)[key] == value
    # Nothing else has changed, and nothing of the tensors.
    others = {k: v for k, v in load(ORACLES / name).settings.items() if k != key}
    assert {k: v for k, v in model.settings.items() if k != key} == others
    assert model.config.tensor_shapes() == load(ORACLES / name).config.tensor_shapes()


def test_yarn_without_rounding_is_another_table() -> None:
    plain, changed = load(ORACLES / "gpt_oss").config, said("gpt_oss", rope__yarn_truncate="true")
    a, b = plain.layers[0].mixer, changed.layers[0].mixer
    assert isinstance(a, Attention)
    assert isinstance(b, Attention)
    assert a.rope is not None
    assert b.rope is not None
    assert a.rope.inv_freq != b.rope.inv_freq
    assert load(ORACLES / "gpt_oss").settings["rope.yarn_truncate"] is False
    assert "rope.yarn_truncate" not in load(ORACLES / "mixtral").settings


@pytest.mark.parametrize(
    ("name", "key", "text", "expected"),
    [
        ("mixtral", "attention.window", "3", "a key of this model"),
        ("llama", "router.score", "sigmoid", "a key of this model"),
        ("mixtral", "rope.yarn_truncate", "true", "a key of this model"),
        ("mixtral", "router.group_score", "max", "a key of this model"),
        ("mixtral", "attention.sliding_window", "none", "another value"),
        ("mixtral", "router.score", "raw", "another value"),
        ("gpt_oss", "rope.yarn_truncate", "false", "another value"),
        ("gpt_oss", "rope.yarn_truncate", "no", "true or false"),
        ("mixtral", "router.score", "tanh", "raw or softmax or sigmoid"),
        ("mixtral", "attention.sliding_window", "4.5", "a whole number or none"),
        ("mixtral", "attention.sliding_window", "0", "an integer from 1"),
        ("mixtral", "attention.scale", "inf", "a number"),
        ("mixtral", "attention.scale", "1e300", "a number"),
        ("mixtral", "attention.clip", "-1", "attention.clip"),
        ("mixtral", "experts.per_token", "5", "an integer from 1 to 4"),
        ("phimoe", "experts.per_token", "1", "axes that go together"),
        ("llama4", "attention.sliding_window", "4", "axes that go together"),
        ("mixtral", "router.weights", "score", "axes that go together"),
    ],
)
def test_what_is_refused(name: str, key: str, text: str, expected: str) -> None:
    if key == "router.weights":
        config = override(load(ORACLES / name).config, {"router.renormalise": "true"})
        with pytest.raises(UsageError, match=expected):
            override(config, {key: text})
        return
    with pytest.raises(UsageError) as caught:
        load(ORACLES / name, Reading(None, ((key, text),)))
    assert expected in caught.value.expected
    assert caught.value.where.startswith("--set")
