# SPDX-License-Identifier: Apache-2.0
"""Commands on a model with an encoder: what it takes that others refuse, and the other way round."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cli.command import MIXTRAL, ROOT, call, validate
from colibri.cli.workflow import device_tokenizer
from colibri.errors import UsageError
from colibri.importers import load
from colibri_sim.prompts import read_prompts

SWITCH = ROOT / "tests" / "oracles" / "encoder_decoder" / "switch_full"


@pytest.mark.parametrize(
    ("words", "where", "got"),
    [
        (("golden", SWITCH, "--ids", "0"), "--source", "none"),
        (("golden", SWITCH, "--ids", "0", "--source", "96"), "--source", "96"),
        (("golden", MIXTRAL, "--ids", "0", "--source", "1"), "--source", "'1'"),
        (("plan", MIXTRAL, "--max-source", "4"), "--max-source", "one without"),
        (("plan", SWITCH, "--max-source", "513"), "--max-source", "513"),
        (("export-gguf", SWITCH, "-o", "x.gguf"), "export-gguf", "one without"),
    ],
)
def test_one_clear_error(words: tuple[object, ...], where: str, got: str) -> None:
    result = call(*words)
    assert result.code == 2
    assert result.err.startswith(f"error: {where}: "), result.err
    assert got in result.err


def test_golden_says_what_the_decoder_says_behind_a_source() -> None:
    document = json.loads(call("golden", SWITCH, "--ids", "0,5", "--source", "4,5,6", "--json").out)
    validate(document, "golden")
    other = json.loads(call("golden", SWITCH, "--ids", "0,5", "--source", "4,5,7", "--json").out)
    assert document["logits"] != other["logits"]


def test_the_plan_counts_source_and_sequence_apart() -> None:
    plan = json.loads(
        call("plan", SWITCH, "-b", "mps2-an386", "-q", "f32", "--max-source", "20", "--max-seq", "10", "--json").out
    )
    validate(plan, "plan")
    attention, block, router, kv = 4 * 24 * 30, 2 * 24 * 20, 4 * 24, 2 * 24 * 30
    # 4 layers of the encoder, two with a router; keys and values of three cross-attentions
    assert plan["source_macs_per_token"] == 4 * (attention + block) + 2 * router + 3 * kv
    assert plan["macs_per_token"] == 3 * (2 * attention - kv + block + router) + 24 * 96
    assert plan["attention_macs"] == [[60, 0, 0], [60, -20, 0]] * 3
    assert plan["ram"]["parts"]["kv_cache"]["bytes"] == 4 * 2 * 30 * (20 + 3 * (10 + 20))
    tables = 4 * 3 * (10 + 39)
    assert plan["flash"]["parts"]["tables"]["bytes"] - tables in range(64, 64 + 64)


def test_a_line_of_prompts_is_a_source_and_what_the_decoder_reads(tmp_path: Path) -> None:
    config, path = load(SWITCH).config, tmp_path / "prompts"
    path.write_text("ids: 1 2 3\nids: 4 5 -> ids: 0 17\n")
    found = [(prompt.source, prompt.ids) for prompt in read_prompts(path, config, None)]
    assert found == [((1, 2, 3), (0,)), ((4, 5), (0, 17))]
    for line, where in (
        ("ids: 1 -> ids:", "1 to 512 tokens"),
        ("ids: -> ids: 0", "1 to 512 tokens"),
        ("1 2", "token ids"),
    ):
        path.write_text(line)
        with pytest.raises(UsageError, match=where):
            read_prompts(path, config, None)


def test_inspect_shows_the_encoder() -> None:
    document = json.loads(call("inspect", SWITCH, "--json").out)
    validate(document, "inspect")
    assert document["config"]["encoder"]["n_layers"] == 4
    assert [layer["mixer"]["over"] for layer in document["config"]["layers"]][3:6] == ["source", "past", "encoded"]


def test_a_shorter_context_has_shorter_tables(tmp_path: Path) -> None:
    llama4 = ROOT / "tests" / "oracles" / "data" / "llama4"
    result = call("pack", llama4, "-b", "linux-x86_64", "--max-seq", "24", "-o", tmp_path / "out")
    assert result.code == 0, result.err
    assert json.loads(call("inspect", tmp_path / "out", "--json").out)["header"]["max_seq"] == 24


def test_the_device_takes_no_source_as_text() -> None:
    raw = (ROOT / "weights" / "stories-moe-3m" / "tokenizer.json").read_bytes()
    of = {path: device_tokenizer(replace(load(path), tokenizer_json=raw)) for path in (MIXTRAL, SWITCH)}
    assert [tokenizer is not None and tokenizer.tables is not None for tokenizer in of.values()] == [True, False]
