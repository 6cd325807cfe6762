# SPDX-License-Identifier: Apache-2.0
"""A model of one's own: the family file."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from colibri.axes import Attention, Convolution, LatentAttention, Norm, Renormalise
from colibri.errors import CheckpointError, ColibriError, UsageError
from colibri.importers import load
from colibri.importers.bind import bind
from colibri.importers.described.family import DescribedFamily
from colibri.importers.safetensors import read_header
from colibri.model import Model, Reading
from colibri.quantise import Policy
from colibri_sim.vectors import golden_model

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
EXAMPLE = EXAMPLES / "own_model.toml"
H, WIDTH, E, V = 36, 20, 5, 64


def example_tensors() -> dict[str, np.ndarray]:
    """The tensors of docs/examples/own_model.py, without torch."""
    rng = np.random.default_rng(1)
    shapes: dict[str, tuple[int, ...]] = {
        "tok.weight": (V, H),
        "norm.weight": (H,),
        "norm.bias": (H,),
        "head.weight": (V, H),
    }
    for n in range(2):
        block = f"blocks.{n}."
        shapes |= {f"{block}{norm}.{leaf}": (H,) for norm in ("norm1", "norm2") for leaf in ("weight", "bias")}
        shapes |= {block + "attn.qkv.weight": (3 * H, H), block + "attn.out.weight": (H, H)}
        shapes |= {
            block + "moe.router.weight": (E, H),
            block + "moe.w_in": (E, H, WIDTH),
            block + "moe.w_out": (E, WIDTH, H),
        }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def saved(folder: Path, tensors: dict[str, np.ndarray]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_file({n: np.ascontiguousarray(t) for n, t in tensors.items()}, folder / "model.safetensors")
    return folder


def described(folder: Path, text: str, tensors: dict[str, np.ndarray] | None = None) -> Model:
    saved(folder, example_tensors() if tensors is None else tensors)
    (folder / "own.toml").write_text(text)
    return load(folder, Reading(str(folder / "own.toml")))


def test_the_example_is_what_its_file_says(tmp_path: Path) -> None:
    tensors = example_tensors()
    model = load(saved(tmp_path, tensors), Reading(str(EXAMPLE)))
    config = model.config
    assert (config.family, config.vocab_size, config.hidden_size, len(config.layers)) == ("own_model", V, H, 2)
    assert config.final_norm == Norm(float(np.float32(1e-5)), "layer", bias=True)
    (layer,) = set(config.layers)
    assert isinstance(layer.mixer, Attention)
    assert layer.mixer.scale == float(np.float32(12**-0.5))
    assert (layer.ffn.activation, layer.ffn.gated) == ("gelu_erf", False)
    assert layer.ffn.router is not None
    assert (layer.ffn.router.score, layer.ffn.router.renormalise) == ("softmax", Renormalise())
    read = {name: tensor.read() for name, tensor in model.tensors.items()}
    for n in range(2):
        qkv = np.concatenate([read[f"layers.{n}.attn.{x}.weight"] for x in "qkv"])
        assert np.array_equal(qkv, tensors[f"blocks.{n}.attn.qkv.weight"])
        for j in range(E):
            experts = f"layers.{n}.experts.{j}."
            assert np.array_equal(read[experts + "up.weight"], tensors[f"blocks.{n}.moe.w_in"][j].T)
            assert np.array_equal(read[experts + "down.weight"], tensors[f"blocks.{n}.moe.w_out"][j].T)
    assert sum(t.size for t in read.values()) == sum(t.size for t in tensors.values())


def test_the_example_script_and_its_file_agree(tmp_path: Path) -> None:
    python = os.environ.get("COLIBRI_ORACLE_PYTHON") or sys.executable
    if python == sys.executable and importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch: set COLIBRI_ORACLE_PYTHON to a Python that has it")
    subprocess.run([python, EXAMPLES / "own_model.py", tmp_path], check=True)
    expected = json.loads((tmp_path / "expected.json").read_text())
    model = load(tmp_path, Reading(str(EXAMPLE)))
    golden = golden_model(model, model.config, Policy.parse("f32").resolve(model.config), "f32")
    logits = golden.forward(expected["ids"]).logits[-1]
    assert np.abs(logits - np.array(expected["logits"])).max() <= 2e-5 * np.abs(expected["logits"]).max()


def test_values_may_come_from_config_json(tmp_path: Path) -> None:
    text = EXAMPLE.read_text().replace("vocab_size = 64", 'vocab_size = "config.n_vocab"')
    (tmp_path / "config.json").write_text('{"n_vocab": 64}')
    assert described(tmp_path, text).config.vocab_size == V
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"a key of config\.json"):
        described(tmp_path, text)


def test_the_hash_covers_the_family_file(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    first = described(tmp_path / "a", text).source_sha256
    assert described(tmp_path / "b", "# a comment\n" + text).source_sha256 == first
    assert described(tmp_path / "c", text.replace("max_seq = 128", "max_seq = 64")).source_sha256 != first


def test_settings_apply_to_a_described_model(tmp_path: Path) -> None:
    saved(tmp_path, example_tensors())
    model = load(tmp_path, Reading(str(EXAMPLE), (("attention.sliding_window", "4"),)))
    assert model.settings["attention.sliding_window"] == 4


MIXED = """
[model]
vocab_size = 6
hidden_size = 8
max_seq = 16
n_layers = 4
tied_head = true
norm = { eps = 1e-6 }
[attention]
n_heads = 2
n_kv_heads = 1
head_dim = 4
rope = { theta = 100.0, pairing = "half", rotary_dim = 2, scaling = { rope_type = "linear", factor = 2.0 } }
[ffn]
width = 4
[layer]
attn_norm = false
attn_post_norm = { eps = 1e-5, kind = "layer" }
residual = 0.5
[router]
n_experts = 3
top_k = 2
renormalise = { norm = "l2", eps = 0.5 }
[shared]
width = 2
gated = true
[[layers]]
numbers = [0, 2]
router = false
shared = false
ffn = { width = 6, activation = "relu2" }
[[layers]]
numbers = [1]
convolution = { taps = 3 }
[[layers]]
numbers = [2]
[layers.latent]
n_heads = 2
kv_rank = 3
nope_dim = 2
rope_dim = 4
value_dim = 5
norm = { eps = 1e-6 }
rope = { theta = 50.0, pairing = "adjacent" }
[tensors]
"all" = "embed.weight"
"""


def mixed_file() -> tuple[str, dict[str, np.ndarray]]:
    """A file with every kind of layer, and tensors under the canonical names themselves."""
    config = DescribedFamily(Path("x"), tomllib.loads(MIXED)).config({})
    shapes = config.tensor_shapes()
    lines = [f'"{name}" = "{name}"' for name in shapes]
    rng = np.random.default_rng(2)
    tensors = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return MIXED.replace('"all" = "embed.weight"', "\n".join(lines)), tensors


def test_layers_of_each_kind(tmp_path: Path) -> None:
    text, tensors = mixed_file()
    model = described(tmp_path, text, tensors)
    mixers = [type(layer.mixer) for layer in model.config.layers]
    assert mixers == [Attention, Convolution, LatentAttention, Attention]
    assert [layer.ffn.router is None for layer in model.config.layers] == [True, False, True, False]
    assert [layer.ffn.width for layer in model.config.layers] == [6, 4, 6, 4]
    attention = model.config.layers[0].mixer
    assert isinstance(attention, Attention)
    assert attention.rope is not None
    assert attention.rope.inv_freq == (0.5,)
    last = model.config.layers[3]
    assert last.attn_norm is None
    assert last.residual == 0.5
    assert last.ffn.router is not None
    assert last.ffn.router.renormalise == Renormalise("l2", 0.5)
    assert {n: t.read().tobytes() for n, t in model.tensors.items()} == {n: t.tobytes() for n, t in tensors.items()}


def test_rows_may_alternate_and_names_be_ignored(tmp_path: Path) -> None:
    text, tensors = mixed_file()
    gate, up = tensors.pop("layers.0.ffn.gate.weight"), tensors.pop("layers.0.ffn.up.weight")
    tensors["both"] = np.stack([gate, up], axis=1).reshape(-1, gate.shape[1])
    tensors["rope.cache"] = np.zeros(3, np.float32)
    lines = [line for line in text.splitlines() if not line.startswith(('"layers.0.ffn.gate', '"layers.0.ffn.up'))]
    pair = '"both" = { to = ["layers.0.ffn.gate.weight", "layers.0.ffn.up.weight"], interleaved = true }'
    model = described(tmp_path, 'ignore = ["rope."]\n' + "\n".join([*lines, pair]), tensors)
    assert np.array_equal(model.tensors["layers.0.ffn.gate.weight"].read(), gate)
    assert np.array_equal(model.tensors["layers.0.ffn.up.weight"].read(), up)
    assert list(model.skipped) == ["rope.cache"]


ROUTER = '"blocks.{n}.moe.router.weight" = "layers.{n}.router.weight"'
BAD_FILES: dict[str, tuple[str, str, str]] = {
    # what is replaced, by what, what the message says
    "not TOML": ("[model]", "[model", "TOML"),
    "a table too many": ("[ffn]", "[mlp]", "one of name, model, attention"),
    "no model": ("[model]", "[layer]", "model: expected a table"),
    "no layers": ("n_layers = 2", "", "a whole number from 1"),
    "too many layers": ("n_layers = 2", "n_layers = 65537", "from 1 to 65536"),
    "a key too many": ("tied_head = false", "tied_head = false\nhead_dim = 3", "model: head_dim: expected one of"),
    "a key too few": ("tied_head = false", "", "model.tied_head: expected a value"),
    "a value of another kind": ("hidden_size = 36", 'hidden_size = "36"', "a whole number, got the string '36'"),
    "a flag that is a number": ("tied_head = false", "tied_head = 0", "true or false"),
    "an unknown axis": ("gated = false", "gates = false", "ffn.gates: expected one of width"),
    "an unknown activation": ('activation = "gelu_erf"', 'activation = "gelu"', "'silu' or 'gelu_tanh'"),
    "no eps": ("eps = 1e-5, ", "", "norm.eps: expected a value"),
    "an eps of zero": ("eps = 1e-5", "eps = 0.0", "eps: expected a number from"),
    "a NaN": ("eps = 1e-5", "eps = nan", "a number"),
    "an infinity": ("theta = 10000.0", "theta = inf", "rope_theta: expected a number"),
    "no theta": ("theta = 10000.0, ", "", "rope_theta"),
    "a pairing that is none": ('pairing = "adjacent"', 'pairing = "both"', "'half' or 'adjacent'"),
    "no mixer": ("[attention]", "[ffn2]", "one of name, model"),
    "heads that do not divide": ("n_kv_heads = 3", "n_kv_heads = 2", "axes that go together"),
    "more chosen than there are": ("top_k = 2", "top_k = 6", "an integer from 1 to 5"),
    "no tensors": ("[tensors]", "[[layers]]\nnumbers = [7]\n[layers.ffn]", "a table of tensor names"),
    "a tensor in no line": (ROUTER, "", "a line for 'layers.0.router.weight' [5, 36], got none and 1 more"),
    "a tensor in two lines": (ROUTER, ROUTER + '\n"again.{n}" = "layers.{n}.router.weight"', "router.weight' once"),
    "a name that the axes do not have": ("layers.{n}.router.weight", "layers.{n}.router.bias", "router.bias'"),
    "a source that is not there": ("blocks.{n}.moe.router.weight", "blocks.{n}.gate.weight", "blocks.0.gate.weight"),
    "a layer on one side only": (ROUTER, '"router" = "layers.{n}.router.weight"', "{n} on both sides"),
    "parts of different shapes": (
        '"norm.bias" = "final_norm.bias"',
        '"norm.bias" = ["final_norm.bias", "head.weight"]',
        "rows of one tensor",
    ),
    "a target that is a number": ('= "embed.weight"', "= 3", "the canonical name"),
    "an option that is unknown": ("transposed = true", "transpose = true", "to, transposed or interleaved"),
    "a flag that is text": ("transposed = true", 'transposed = "yes"', "true or false"),
    "ignored that is text": ('name = "own_model"', 'ignore = "x"', "a list of beginnings"),
    "a name that is a list": ('name = "own_model"', "name = [1]", "text"),
    "stated the other way": ("transposed = true", "transposed = false", "from the configuration"),
}


@pytest.mark.parametrize("rule", BAD_FILES)
def test_a_bad_family_file_is_refused(tmp_path: Path, rule: str) -> None:
    old, new, said = BAD_FILES[rule]
    text = EXAMPLE.read_text()
    assert old in text
    with pytest.raises(ColibriError) as caught:
        described(tmp_path, text.replace(old, new))
    error: Any = caught.value
    assert isinstance(error, CheckpointError)
    assert said in str(error)
    assert str(error).isprintable()
    assert error.hint


def test_a_square_stack_must_be_stated(tmp_path: Path) -> None:
    text = EXAMPLE.read_text().replace("width = 20", "width = 36").replace(", transposed = true", "")
    tensors = example_tensors()
    for n in range(2):
        for name in ("w_in", "w_out"):
            tensors[f"blocks.{n}.moe.{name}"] = np.ones((E, H, H), np.float32)
    with pytest.raises(CheckpointError, match="either orientation fits"):
        described(tmp_path, text, tensors)


def test_no_family_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a \.toml file"):
        load(saved(tmp_path, example_tensors()), Reading(str(tmp_path / "nothing.toml")))


ODD: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, 7, -1, 2**31, 2**70, 65537, 0.0, 0.5, -0.5, 1e300, float("nan"), float("inf")),
    *("", "x", "half", "config.x", "silu", "{n}", "{e}", "embed.weight", "layers.{n}.experts.{e}.up.weight"),
    *([], [0], [1, "a"], [[1]], {}, {"to": "embed.weight"}, {"eps": 1e-5}),
]


def places(value: Any, start: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for key, item in items for p in [(*start, key), *places(item, (*start, key))]]


@pytest.mark.parametrize("which", ["example", "mixed"])
def test_odd_values_anywhere_give_a_model_or_one_error(tmp_path: Path, which: str) -> None:
    text, tensors = (EXAMPLE.read_text(), example_tensors()) if which == "example" else mixed_file()
    sources = read_header(saved(tmp_path, tensors) / "model.safetensors")
    good, rng = tomllib.loads(text), random.Random(which)
    for _ in range(250):
        values = copy.deepcopy(good)
        *outer, key = rng.choice(places(values))
        at: Any = values
        for step in outer:
            at = at[step]
        at[key] = copy.deepcopy(rng.choice(ODD))
        family = DescribedFamily(Path("own.toml"), values)
        try:
            config = family.config({"x": 4})
            bind(config, family.bindings(config, sources), sources, "here")
        except ColibriError as caught:
            error = caught
        else:
            continue
        assert str(error).isprintable()
        assert error.hint


def test_latent_attention_has_a_rotated_key(tmp_path: Path) -> None:
    text, tensors = mixed_file()
    with pytest.raises(CheckpointError, match="a rotated key"):
        described(tmp_path, text.replace('rope = { theta = 50.0, pairing = "adjacent" }', "rope = false"), tensors)
