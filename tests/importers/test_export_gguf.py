# SPDX-License-Identifier: Apache-2.0
"""export-gguf: what it writes is the model, read back by our importer and by llama.cpp's own package."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from exportable import MODELS, ORACLES, ROOT
from gguf import GGUFReader
from gguf.quants import dequantize
from gguf_oracles import permuted

from colibri.axes import Attention
from colibri.errors import OutputError, UsageError
from colibri.export.gguf import Type, export_gguf
from colibri.export.gguf.architectures import WRITTEN
from colibri.export.gguf.rotation import rope_of
from colibri.importers import load
from colibri.importers.ggml import GROUP
from colibri.model import Model, Tensor
from colibri.quantise import Format, Policy, store
from colibri.tokenizer import Tokenizer
from colibri_sim.golden import GoldenModel

STORIES = ROOT / "weights" / "stories-moe-3m"
IDS = [1, 17, 80, 4, 55, 9, 31, 77]
# What an architecture of llama.cpp's has no key for, no tensor, or no place for in its reader.
REFUSED = {
    "mistral_swa": "mixer.window = None",
    "qwen3": "no bias on the attention's output",
    "olmoe": "as many heads of keys as of queries",
    "qwen3_moe_nonorm": "router.renormalise",
    "flex_olmo": "a norm before the attention",
    "qwen2_moe": "'blk.0.ffn_gate_inp.weight'",
    "deepseek_v2": "queries with a latent in deepseek2 of 2 layers, got none",
    "deepseek_v2_groups": "router.group_score",
    "deepseek_v3": "only tensors that the model uses, got 'blk.0.attn_kv_a_mqa.bias'",
    "lfm2_moe": "rotary positions in every layer, got Convolution",
    "llama4": "rotary positions in every layer, got one without",
    "jetmoe": "rotary positions in every layer, got a mixture of attention",
    "llama_moe": "a gate of two layers",
    "gpt_oss": "rotary frequencies that are powers of one base, got scaled ones",
    "dbrx": "mixer.clip = None",
    "phimoe": "only tensors that the model uses, got 'blk.0.attn_norm.bias'",
    "ernie4_5_moe": "only tensors that the model uses, got 'blk.1.exp_probs_b.bias'",
    "llama_bias": "only tensors that the model uses, got 'blk.0.ffn_down.bias'",
}
REORDERED = ("llama", "granitemoe", "deepseek")  # llama.cpp rotates adjacent pairs there


def logits(model: Model) -> np.ndarray:
    policy = Policy.parse("f32").resolve(model.config)
    return GoldenModel(model.config, cache(lambda n: store(model.tensors[n], policy.format_of(n)))).forward(IDS).logits


@pytest.mark.parametrize("name", MODELS)
def test_the_file_is_the_model(name: str, tmp_path: Path) -> None:
    architecture, make = MODELS[name]
    model, path = make(), tmp_path / "out.gguf"
    done = export_gguf(model, path)
    again = load(path)
    assert (done.architecture, done.n_bytes) == (architecture, path.stat().st_size)
    assert [p.name for p in tmp_path.iterdir()] == ["out.gguf"]
    reordered = architecture in REORDERED and rope_of(model.config).pairing == "half"
    for tensor in model:
        expected, found = tensor.read(), again.tensors[tensor.name].read()
        if reordered and (".attn.q." in tensor.name or ".attn.k." in tensor.name):
            mixer = model.config.layers[0].mixer
            assert isinstance(mixer, Attention)
            expected = permuted(expected, len(expected) // mixer.head_dim)
        assert np.array_equal(found.view(np.uint32), expected.view(np.uint32)), tensor.name
    expected, found = logits(model), logits(again)
    if reordered:  # sums of other roundings
        assert np.abs(found - expected).max() <= 2e-6 * np.abs(expected).max()
        assert np.array_equal(found.argmax(axis=-1), expected.argmax(axis=-1))
    else:
        assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_every_architecture_that_is_written_has_a_model_here() -> None:
    assert {architecture for architecture, _ in MODELS.values()} == set(WRITTEN)


def test_a_head_that_llama_cpp_would_miss_is_refused(tmp_path: Path) -> None:
    model = MODELS["olmoe"][1]()
    tied = replace(model, config=replace(model.config, tied_head=True))
    with pytest.raises(UsageError, match="a head of its own, which olmoe needs"):
        export_gguf(tied, tmp_path / "out.gguf")


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_architecture_says_is_refused_and_nothing_is_left(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=REFUSED[name]):
        export_gguf(load(ORACLES / name), tmp_path / "out.gguf")
    assert not list(tmp_path.iterdir())


def test_llama_cpps_package_reads_names_shapes_and_values(tmp_path: Path) -> None:
    model, path = load(ORACLES / "mixtral"), tmp_path / "out.gguf"
    export_gguf(model, path)
    reader = GGUFReader(path)
    tensors = {t.name: t for t in reader.tensors}
    c, mixer = model.config, model.config.layers[0].mixer
    assert isinstance(mixer, Attention)
    assert reader.fields["llama.expert_used_count"].contents() == 2
    assert np.array_equal(tensors["token_embd.weight"].data, model.tensors["embed.weight"].read())
    for part in ("gate", "up", "down"):
        experts = [
            model.tensors[f"layers.1.experts.{j}.{part}.weight"].read() for j in range(c.layers[1].ffn.router.n_experts)
        ]  # type: ignore[union-attr]
        assert np.array_equal(tensors[f"blk.1.ffn_{part}_exps.weight"].data, np.stack(experts))
    for name, heads in (("q", mixer.n_heads), ("k", mixer.n_kv_heads)):  # as llama.cpp's converter reorders them
        rows = model.tensors[f"layers.0.attn.{name}.weight"].read()
        expected = rows.reshape(heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)
        assert np.array_equal(tensors[f"blk.0.attn_{name}.weight"].data, expected)
    assert np.array_equal(tensors["blk.0.attn_v.weight"].data, model.tensors["layers.0.attn.v.weight"].read())


@pytest.mark.parametrize(("type_", "name"), [("f16", "F16"), ("q8_0", "Q8_0")])
def test_other_types(type_: Type, name: str, tmp_path: Path) -> None:
    model, path = load(STORIES), tmp_path / "out.gguf"
    export_gguf(model, path, type_)
    tensors = {t.name: t for t in GGUFReader(path).tensors}
    assert tensors["blk.0.attn_norm.weight"].tensor_type.name == "F32"
    assert tensors["blk.0.ffn_gate_inp.weight"].tensor_type.name == "F32"
    stored = tensors["blk.0.attn_v.weight"]
    assert stored.tensor_type.name == name
    expected = model.tensors["layers.0.attn.v.weight"].read()
    found = dequantize(stored.data, stored.tensor_type)
    again = load(path).tensors["layers.0.attn.v.weight"]
    assert np.array_equal(again.read(), found)
    bound = np.abs(expected).max() * (2.0**-11 if type_ == "f16" else 1 / 250)
    assert 0 < np.abs(found - expected).max() <= bound
    mixer = model.config.layers[0].mixer
    assert isinstance(mixer, Attention)
    for matrix, heads in (("q", mixer.n_heads), ("k", mixer.n_kv_heads)):  # rows are reordered, then rounded
        stored = tensors[f"blk.0.attn_{matrix}.weight"]
        expected = permuted(model.tensors[f"layers.0.attn.{matrix}.weight"].read(), heads)
        bound = np.abs(expected).max() * (2.0**-11 if type_ == "f16" else 1 / 250)
        assert np.abs(dequantize(stored.data, stored.tensor_type) - expected).max() <= bound


def test_q8_0_in_is_q8_0_out(tmp_path: Path) -> None:
    first, second = tmp_path / "a.gguf", tmp_path / "b.gguf"
    export_gguf(load(STORIES), first, "q8_0")
    export_gguf(load(first), second, "q8_0")
    one, two = GGUFReader(first), GGUFReader(second)
    assert [t.name for t in one.tensors] == [t.name for t in two.tensors]
    assert all(np.array_equal(a.data, b.data) for a, b in zip(one.tensors, two.tensors, strict=True))
    tensor = load(second).tensors["layers.0.experts.0.up.weight"]
    assert np.array_equal(store(tensor, Format("q8", 32)).values(), tensor.read())


@pytest.mark.parametrize("lowest", [-127, -128])
def test_blocks_of_q8_0_are_kept_though_their_rows_are_reordered(lowest: int, tmp_path: Path) -> None:
    """A file may hold -128, which kernels do not take."""
    model, path, name = load(STORIES), tmp_path / "out.gguf", "layers.0.attn.q.weight"
    mixer = model.config.layers[0].mixer
    assert isinstance(mixer, Attention)
    rng, (rows, cols) = np.random.default_rng(12), model.tensors[name].shape
    q = rng.integers(lowest, 128, (rows, cols)).astype(np.int16)
    q[:, 5] = lowest
    scales = rng.uniform(0.01, 1, (rows, cols // GROUP)).astype(np.float16).astype(np.float32)
    values = q.astype(np.float32) * scales.repeat(GROUP, axis=1)
    tensor = Tensor(name, values.shape, "q8_0", "here", values.copy, lambda: (q, scales))
    export_gguf(replace(model, tensors={**model.tensors, name: tensor}), path, "q8_0")
    stored = next(t for t in GGUFReader(path).tensors if t.name == "blk.0.attn_q.weight")
    assert np.array_equal(dequantize(stored.data, stored.tensor_type), permuted(values, mixer.n_heads))


def test_the_tokenizer_goes_with_it(tmp_path: Path) -> None:
    model, path = load(STORIES), tmp_path / "out.gguf"
    done = export_gguf(model, path, "q8_0")
    again = load(path)
    assert done.no_text is None
    assert model.tokenizer_json is not None
    assert again.tokenizer_json is not None
    assert (again.config.bos_id, again.config.eos_ids) == (model.config.bos_id, model.config.eos_ids)
    one, two = Tokenizer(model.tokenizer_json, ""), Tokenizer(again.tokenizer_json, "")
    for text in ("Once upon a time, there was a little dog.", "  two  spaces\n\n\u00fc \u20ac 12345", "</s>x"):
        assert one.encode(text) == two.encode(text)
        assert one.decode(one.encode(text)) == two.decode(two.encode(text))


def test_a_tokenizer_that_gguf_cannot_say_is_left_out_with_the_reason(tmp_path: Path) -> None:
    done = export_gguf(load(ROOT / "weights" / "micro-moe"), tmp_path / "out.gguf")
    assert done.no_text is not None
    assert "GGUF has no name" in done.no_text
    assert load(tmp_path / "out.gguf").tokenizer_json is None


def test_targets(tmp_path: Path) -> None:
    model = load(ORACLES / "qwen3_moe")
    with pytest.raises(UsageError, match=r"ends in \.gguf"):
        export_gguf(model, tmp_path / "out.bin")
    with pytest.raises(OutputError):
        export_gguf(model, tmp_path / "nowhere" / "out.gguf")
    alone = replace(model, tokenizer_json=None)
    assert export_gguf(alone, tmp_path / "out.gguf").no_text is None
