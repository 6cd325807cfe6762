# SPDX-License-Identifier: Apache-2.0
"""RoPE tables against the reference framework's own bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_checkpoint as tc

from colibri.importers import load

ORACLES = Path(__file__).parents[1] / "oracles" / "data"


def table(tmp_path: Path, **config: Any) -> tuple[float, ...]:
    tiny = tc.llama()
    del tiny.config["rope_parameters"]
    tiny.config |= config
    return load(tiny.write(tmp_path)).config.layers[0].mixer.rope.inv_freq


def has_table(name: str) -> bool:
    """The oracles by a published formula compute their frequencies where they are used."""
    return "inv_freq" in np.load(ORACLES / name / "golden.npz")


NAMES = sorted(p.name for p in ORACLES.iterdir())


def test_all_but_the_six_by_formula_have_a_table() -> None:
    assert sum(not has_table(name) for name in NAMES) == 6


@pytest.mark.parametrize("name", [name for name in NAMES if has_table(name)])
def test_tables_have_the_bits_of_the_framework(name: str) -> None:
    model = load(ORACLES / name)
    expected = np.load(ORACLES / name / "golden.npz")["inv_freq"]
    ropes = [rope for layer in model.config.layers if (rope := getattr(layer.mixer, "rope", None)) is not None]
    assert ropes
    for rope in ropes:
        assert np.array(rope.inv_freq, np.float32).tobytes() == expected.tobytes()


def test_the_llama3_oracle_has_frequencies_in_all_three_bands() -> None:
    scaled = np.array(load(ORACLES / "llama_tied_rope3").config.layers[0].mixer.rope.inv_freq)
    plain = 10000.0 ** (-np.arange(0, 16, 2) / 16)
    ratio = plain / scaled
    assert np.isclose(ratio, 1).any()
    assert np.isclose(ratio, 8).any()
    assert ((ratio > 1.01) & (ratio < 7.99)).any()


def test_old_and_new_spelling_of_a_scaling_are_one(tmp_path: Path) -> None:
    new = table(tmp_path / "a", rope_parameters={"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0})
    old = table(tmp_path / "b", rope_theta=500.0, rope_scaling={"type": "linear", "factor": 2})
    both = table(
        tmp_path / "c",
        rope_theta=500.0,
        rope_scaling={"type": "linear", "rope_type": "linear", "factor": 2.0},
        rope_parameters={"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0},
    )
    assert new == old == both
    assert new[0] == 0.5


@pytest.mark.parametrize("place", ["in the set", "in the file", "by default"])
def test_the_original_context_length_is_found(tmp_path: Path, place: str) -> None:
    scaling: dict[str, Any] = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    config: dict[str, Any] = {"rope_theta": 100.0, "rope_scaling": scaling, "max_position_embeddings": 16}
    key = "original_max_position_embeddings"
    if place == "in the set":
        scaling[key] = 16
        config["max_position_embeddings"] = 4096
    elif place == "in the file":
        scaling[key] = 4096
        config[key] = 16
    # 2 pi / 1 is between 16 / 4 and 16 / 1; 2 pi / 0.1 beyond both.
    t = (16 / (2 * np.pi) - 1) / 3
    assert np.allclose(table(tmp_path, **config), [(1 - t) / 8 + t, 0.1 / 8])


def test_a_null_scaling_is_none(tmp_path: Path) -> None:
    plain = table(tmp_path / "a")
    assert table(tmp_path / "b", rope_scaling=None, partial_rotary_factor=None) == plain
    assert table(tmp_path / "c", rope_parameters={}, partial_rotary_factor=1) == plain
