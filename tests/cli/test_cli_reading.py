# SPDX-License-Identifier: Apache-2.0
"""--family and --set: how a checkpoint is read, on the commands that take one, and what a packed folder remembers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli.command import MIXTRAL, ROOT, call
from colibri.cli import options, workflow
from colibri.folder import read_folder
from colibri.model import Reading

BOARD = "linux-x86_64"
ORACLES = ROOT / "tests" / "oracles" / "data"
EXAMPLE = ROOT / "docs" / "examples" / "own_model.toml"
WINDOW = ("--set", "attention.sliding_window=3")


def logits(*args: object) -> list[list[float]]:
    result = call("golden", MIXTRAL, "--ids", "1,2,3,4,5,6", *args, "--json")
    assert result.code == 0, result.err
    rows: list[list[float]] = result.document["logits"]
    return rows


def test_every_key_of_set_is_a_path_of_inspects_config() -> None:
    for folder in ("gpt_oss", "deepseek_v3", "llama4", "lfm2_moe"):
        document = call("inspect", ORACLES / folder, "--json").document
        assert document["settings"]
        for path, value in document["settings"].items():
            at = document["config"]
            for key in path.split("."):
                at = at[key]
            assert at == value


def test_a_setting_reaches_the_golden_model() -> None:
    plain, windowed = logits(), logits(*WINDOW)
    assert plain[:3] == windowed[:3]  # a window of three holds them
    assert plain[3] != windowed[3]


def test_a_packed_folder_remembers_how_it_was_read(tmp_path: Path) -> None:
    plain, out = tmp_path / "plain", tmp_path / "out"
    assert call("pack", MIXTRAL, "-b", BOARD, "-o", plain).code == 0
    assert call("pack", MIXTRAL, "-b", BOARD, *WINDOW, "-o", out).code == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["reading"] == {"family": None, "set": {"attention.sliding_window": "3"}}
    assert manifest["config_hash"] != json.loads((plain / "manifest.json").read_text())["config_hash"]
    folder = read_folder(out)
    assert folder.reading == Reading(None, (("attention.sliding_window", "3"),))
    golden = workflow.golden_of(folder).forward([1, 2, 3, 4, 5, 6])
    assert (
        golden.logits[5].tolist()
        != workflow.golden_of(read_folder(plain)).forward([1, 2, 3, 4, 5, 6]).logits[5].tolist()
    )


def test_a_kept_folder_is_used_again_for_the_same_reading_only(tmp_path: Path) -> None:
    work = tmp_path / "work"
    values: dict[str, Any] = {**dict.fromkeys(options.SETTING_NAMES), "family": None}
    values["overrides"] = (("attention.sliding_window", "3"),)
    with workflow.packed(MIXTRAL, BOARD, values, work) as folder:
        first = folder.manifest
    stamp = (work / "model.bin").stat().st_mtime_ns
    with workflow.packed(MIXTRAL, BOARD, values, work):
        assert (work / "model.bin").stat().st_mtime_ns == stamp
    with workflow.packed(MIXTRAL, BOARD, {**values, "overrides": ()}, work) as folder:
        assert folder.manifest["reading"]["set"] == {}
        assert folder.manifest["config_hash"] != first["config_hash"]


def test_on_a_packed_folder_they_are_refused_with_the_command_that_would_do_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("pack", MIXTRAL, "-b", BOARD, *WINDOW, "-o", out).code == 0
    result = call("audit", out, "--set", "experts.per_token=1", "--family", "mixtral")
    assert result.code == 2
    assert "--family mixtral" in result.err
    assert "--set attention.sliding_window=3" in result.err
    assert "--set experts.per_token=1" in result.err


def test_a_family_file_goes_through_to_the_folder(tmp_path: Path) -> None:
    # The Mixtral oracle, described.
    described = tmp_path / "described.toml"
    config = json.loads((MIXTRAL / "config.json").read_text())
    text = EXAMPLE.read_text()
    head = f"""
[model]
vocab_size = "config.vocab_size"
hidden_size = "config.hidden_size"
max_seq = {config["max_position_embeddings"]}
n_layers = 2
tied_head = false
norm = {{ eps = {config["rms_norm_eps"]} }}
bos_id = 1
eos_ids = [2]
[attention]
n_heads = 6
n_kv_heads = 2
head_dim = 8
rope = {{ theta = {config["rope_parameters"]["rope_theta"]}, pairing = "half" }}
[ffn]
width = 24
[router]
n_experts = 4
top_k = 2
[tensors]
"""
    assert text.startswith("#")
    lines = {
        "model.embed_tokens.weight": "embed.weight",
        "model.norm.weight": "final_norm.weight",
        "lm_head.weight": "head.weight",
        "model.layers.{n}.input_layernorm.weight": "layers.{n}.attn_norm.weight",
        "model.layers.{n}.post_attention_layernorm.weight": "layers.{n}.ffn_norm.weight",
        "model.layers.{n}.block_sparse_moe.gate.weight": "layers.{n}.router.weight",
    }
    lines |= {f"model.layers.{{n}}.self_attn.{x}_proj.weight": f"layers.{{n}}.attn.{x}.weight" for x in "qkvo"}
    for w, name in (("w1", "gate"), ("w3", "up"), ("w2", "down")):
        lines[f"model.layers.{{n}}.block_sparse_moe.experts.{{e}}.{w}.weight"] = (
            f"layers.{{n}}.experts.{{e}}.{name}.weight"
        )
    described.write_text(head + "\n".join(f'"{old}" = "{new}"' for old, new in lines.items()))
    assert logits("--family", described) == logits()
    out = tmp_path / "out"
    assert call("pack", MIXTRAL, "-b", BOARD, "--family", described, "-o", out).code == 0
    assert read_folder(out).manifest["reading"]["family"] == "described.toml"
    assert read_folder(out).reading.family == str(described)
    workflow.golden_of(read_folder(out))
    described.write_text(described.read_text().replace("top_k = 2", "top_k = 1"))
    result = call("verify", out, "--prompts", described)
    assert result.code == 2


@pytest.mark.parametrize("words", [("--set", "x"), ("--set", "=3"), ("--set", "a="), ("--set", "a=1", "--set", "a=2")])
def test_what_is_no_setting_is_a_usage_error(words: tuple[str, ...]) -> None:
    assert call("inspect", MIXTRAL, *words).code == 2


def test_an_image_is_read_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("pack", MIXTRAL, "-b", BOARD, "-o", out).code == 0
    shutil.copy(out / "model.bin", tmp_path / "model.bin")
    result = call("inspect", tmp_path / "model.bin", *WINDOW)
    assert result.code == 2
    assert "a checkpoint" in result.err
