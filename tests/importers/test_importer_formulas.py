# SPDX-License-Identifier: Apache-2.0
"""Families by their published formula: a family file says the same as the importer, and what has no arithmetic is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri.axes import Hierarchy, Renormalise, Router, Shared
from colibri.combinations import contradictions
from colibri.errors import CheckpointError, UsageError
from colibri.importers import load
from colibri.layout.uses import depends_on_data
from colibri.model import Reading

ROOT = Path(__file__).parents[2]
ORACLES, FILES = ROOT / "tests" / "oracles" / "data", ROOT / "docs" / "examples" / "published"
FILED = sorted(path.stem for path in FILES.glob("*.toml"))


@pytest.mark.parametrize("name", FILED)
def test_a_family_file_says_the_same(name: str) -> None:
    own, described = load(ORACLES / name), load(ORACLES / name, reading=Reading(str(FILES / f"{name}.toml")))
    assert (own.config.layers, own.config.final_norm) == (described.config.layers, described.config.final_norm)
    assert own.tensors.keys() == described.tensors.keys()
    for tensor, theirs in zip(own, described, strict=True):
        assert np.array_equal(tensor.read(), theirs.read()), tensor.name


def test_there_is_a_file_of_each() -> None:
    assert FILED == ["dynamic_moe", "glam", "hierarchical_moe", "pr_moe"]


def test_the_published_folder_of_dynamic_moe_says_llama(tmp_path: Path) -> None:
    folder = shutil.copytree(ORACLES / "dynamic_moe", tmp_path / "copy")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "llama"}))
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    assert "--family" in caught.value.hint
    assert load(folder, reading=Reading("dynamic_moe")).config.layers == load(ORACLES / "dynamic_moe").config.layers


def test_a_pyramid_has_more_experts_in_later_layers() -> None:
    routers = [layer.ffn.router for layer in load(ORACLES / "pr_moe").config.layers]
    assert [r.n_experts if r else None for r in routers] == [None, 3, None, 6]


def test_swiglu_halves_are_gate_and_up(tmp_path: Path) -> None:
    """The same rows, read as a gated block of half the width."""
    folder = shutil.copytree(ORACLES / "pr_moe", tmp_path / "copy")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"swiglu": True, "ffn_hidden_size": 14}))
    with pytest.raises(CheckpointError, match=r"dense_4h_to_h\.weight"):  # 28 columns: that of the file is no SwiGLU's
        dict(load(folder).tensors)


def changed(name: str, **axes: Any) -> Callable[[], list[str]]:
    def problems() -> list[str]:
        config = load(ORACLES / name).config
        layer = next(layer for layer in config.layers if layer.ffn.router is not None)
        assert layer.ffn.router is not None
        ffn = replace(layer.ffn, router=replace(layer.ffn.router, **axes))
        return list(contradictions(replace(config, layers=(replace(layer, ffn=ffn),))))

    return problems


@pytest.mark.parametrize(
    ("problems", "said"),
    [
        (changed("dynamic_moe", top_p=0.0), "not above 0"),
        (changed("dynamic_moe", top_p=1.5), "at most 1"),
        (changed("dynamic_moe", score="raw"), "a share of softmax or sigmoid"),
        (changed("dynamic_moe", weights="softmax"), "which are the weights"),
        (changed("dynamic_moe", hierarchy=Hierarchy(2, 1)), "a hierarchy together with top_p"),
        (changed("hierarchical_moe", top_k=3), "the same number from each"),
        (changed("hierarchical_moe", top_k=10), "10 experts from 2 groups of 4"),
        (changed("hierarchical_moe", n_experts=13), "3 groups of 13 experts"),
        (changed("hierarchical_moe", renormalise=Renormalise()), "together with renormalise"),
        (changed("hierarchical_moe", bias=True), "together with bias"),
        (changed("hierarchical_moe", hierarchy=Hierarchy(3, 4)), "4 of 3 groups"),
        (changed("hierarchical_moe", method="sparsemixer", top_k=2), "sparsemixer together with hierarchy"),
    ],
)
def test_what_has_no_arithmetic_is_refused(problems: Callable[[], list[str]], said: str) -> None:
    assert any(said in problem for problem in problems()), problems()


def test_a_shared_block_has_one_kind_of_weight() -> None:
    config = load(ORACLES / "pr_moe").config
    layer = replace(config.layers[1], ffn=replace(config.layers[1].ffn, shared=Shared(28, gated=True, mix=True)))
    assert any("a gate and a mix" in p for p in contradictions(replace(config, layers=(layer,))))


def test_a_share_may_be_stated_and_taken_back() -> None:
    wanted = Reading(None, (("router.top_p", "0.25"), ("experts.per_token", "2")))
    routers = {layer.ffn.router for layer in load(ORACLES / "dynamic_moe", reading=wanted).config.layers}
    assert routers == {None, Router(6, 2, score="softmax", top_p=0.25, weights="score")}
    fixed = load(ORACLES / "dynamic_moe", reading=Reading(None, (("router.top_p", "none"),))).config
    assert (depends_on_data(fixed), depends_on_data(load(ORACLES / "dynamic_moe").config)) == ([], ["router.top_p"])
    for text in ("0", "1.5", "nan", "half"):
        with pytest.raises(UsageError, match=r"router\.top_p"):
            load(ORACLES / "dynamic_moe", reading=Reading(None, (("router.top_p", text),)))
    with pytest.raises(UsageError, match="a share of softmax or sigmoid"):
        load(ORACLES / "mixtral", reading=Reading(None, (("router.top_p", "0.5"),)))
