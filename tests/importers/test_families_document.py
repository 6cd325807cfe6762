# SPDX-License-Identifier: Apache-2.0
"""docs/FAMILIES.md is what the importers and oracles say, and the class defaults are the framework's."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import families_table
import gguf_oracles
import pytest

from colibri.export.gguf.architectures import WRITTEN
from colibri.importers.families import FAMILIES
from colibri.importers.gguf.architectures import ARCHITECTURES

_NO_CLASS = {"deepseek", "llama_moe", "glam", "deepspeed_moe", "hierarchical_moe", "dynamic_moe"}
_SCRIPT = """
import json, os, sys
os.environ["HF_HUB_OFFLINE"] = "1"
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
said = {}
for name in json.loads(sys.argv[1]):
    values = CONFIG_MAPPING[name]().to_dict()
    said[name] = {k: v for k, v in values.items() if v is None or isinstance(v, (bool, int, float, str))}
    said[name]["rope_theta"] = (values.get("rope_parameters") or {}).get("rope_theta")
print(json.dumps(said))
"""


def test_the_table_is_fresh() -> None:
    document = families_table.DOCUMENT.read_text("utf-8")
    assert families_table.with_table(document) == document, "run: python tests/importers/families_table.py"


@pytest.mark.parametrize(
    ("mark", "names"), [("<!-- oracles as GGUF -->", gguf_oracles.FILES), ("<!-- written as GGUF -->", WRITTEN)]
)
def test_lists_are_those_of_the_tests_and_the_code(mark: str, names: Mapping[str, Any]) -> None:
    lines = families_table.DOCUMENT.read_text("utf-8").splitlines()
    assert lines[lines.index(mark) + 1] == ", ".join(f"`{name}`" for name in names) + "."


def test_every_gguf_architecture_has_a_row() -> None:
    document = families_table.DOCUMENT.read_text("utf-8")
    rows = document.partition("| `general.architecture` |")[2].partition("\n\n")[0].splitlines()[2:]
    assert sorted(name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])) == sorted(ARCHITECTURES)


def test_defaults_are_those_of_the_framework() -> None:
    python = os.environ.get("COLIBRI_ORACLE_PYTHON") or sys.executable
    if python == sys.executable and importlib.util.find_spec("transformers") is None:
        pytest.skip("needs transformers: set COLIBRI_ORACLE_PYTHON to a Python that has it")
    names = [name for name in FAMILIES if name not in _NO_CLASS]
    run = subprocess.run([python, "-c", _SCRIPT, json.dumps(names)], check=True, capture_output=True, text=True)
    theirs: dict[str, dict[str, Any]] = json.loads(run.stdout)
    wrong = {
        (name, key): (value, theirs[name][key])
        for name in names
        for key, value in FAMILIES[name].defaults.items()
        if value is not None and key in theirs[name] and theirs[name][key] != value and (name, key) not in _COMPUTED
    }
    assert not wrong
    # None: computed from the others, by the class as by Colibri.
    heads = {name: t["hidden_size"] // t["num_attention_heads"] for name, t in theirs.items() if "hidden_size" in t}
    for name in names:
        for key in (key for key, value in FAMILIES[name].defaults.items() if value is None):
            derived = {
                None,
                theirs[name].get("num_attention_heads") if key == "num_key_value_heads" else heads.get(name),
            }
            assert theirs[name].get(key) in derived or (name, key) in _COMPUTED, (name, key)


# What the class shows after it has computed with the default: the window without use_sliding_window, the last layer;
# and for latent attention a width of heads that Colibri does not read.
_COMPUTED = {
    ("dbrx", "num_key_value_heads"),
    *((name, "head_dim") for name in ("deepseek_v2", "deepseek_v3")),
    *((name, "sliding_window") for name in ("qwen2", "qwen3", "qwen2_moe", "qwen3_moe")),
    ("ernie4_5_moe", "moe_layer_end_index"),
}
