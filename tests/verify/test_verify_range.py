# SPDX-License-Identifier: Apache-2.0
"""Numbers out of range: target and golden model say so at the same position; a target that does not differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri.folder import Folder
from image.packs import Edit, Packs, settings

from .mutants import patched_build, verdict


def overflowing(expert: int) -> Edit:
    """Tokens of that expert of layer 1 leave the range; the others do not."""

    def edit(tensors: dict[str, Any]) -> None:
        for matrix in ("w1", "w3"):
            tensors[f"model.layers.1.block_sparse_moe.experts.{expert}.{matrix}.weight"] *= np.float32(2.0**28)

    return edit


@pytest.fixture(scope="module")
def folder(packs: Packs) -> Folder:
    chosen = [layers[1] for layers in packs.folder("mixtral", "f32").vectors()["prompts"][0]["experts"]]
    later = next(e for experts in chosen[1:] for e in experts if e not in chosen[0])
    found = packs.pack(packs.doctored("mixtral", overflowing(later)), settings("f32"))
    (prompt,) = found.vectors()["prompts"]
    assert 0 < prompt["range_at"] < len(prompt["ids"]) - 1
    return found


def test_the_engine_leaves_the_range_where_the_golden_model_does(packs: Packs, folder: Folder) -> None:
    assert verdict(folder, packs.built(folder) / "firmware.elf").bit_exact


def test_an_engine_that_does_not_check_differs(packs: Packs, folder: Folder, tmp_path: Path) -> None:
    edits = {"engine/range.c": (": COLIBRI_ERR_RANGE", ": COLIBRI_OK")}
    found = verdict(folder, patched_build(packs.private(folder), edits, tmp_path)).first_difference
    assert found is not None
    assert found.tensor == "status"


def test_a_cache_of_binary16_has_a_smaller_range(packs: Packs, tmp_path: Path) -> None:
    """Values that only an f16 cache cannot hold end the step there, and an engine with the other limit differs."""

    def grow(tensors: dict[str, Any]) -> None:
        tensors["model.layers.1.self_attn.v_proj.weight"] *= np.float32(2.0**20)

    source = packs.doctored("mixtral", grow)
    wide, narrow = (packs.pack(source, settings("f32", kv=kv)) for kv in ("f32", "f16"))
    assert wide.vectors()["prompts"][0].get("range_at") is None
    assert narrow.vectors()["prompts"][0]["range_at"] is not None
    for folder in (wide, narrow):
        assert verdict(folder, packs.built(folder) / "firmware.elf").bit_exact
    edits = {"engine/cache.c": ("0x477ff000u", "COLIBRI_RANGE_BITS")}
    found = verdict(narrow, patched_build(packs.private(narrow), edits, tmp_path)).first_difference
    assert found is not None
    assert found.tensor == "status"
