# SPDX-License-Identifier: Apache-2.0
"""Other layouts of the same weights: merged and stacked experts, foreign names, block-scaled FP8, MXFP4, nested models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_checkpoint as tc

from colibri.axes import Attention
from colibri.errors import CheckpointError
from colibri.importers import load
from colibri.importers.decode import to_float32
from colibri.importers.safetensors import read_header
from colibri.model import Model

ORACLES = Path(__file__).parents[1] / "oracles" / "data"


def bits(model: Model) -> dict[str, bytes]:
    return {t.name: t.read().tobytes() for t in model}


def opened(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Config and tensors of an oracle of one file, in float32."""
    folder = ORACLES / name
    header = read_header(folder / "model.safetensors")
    tensors = {n: to_float32(t.read_bytes(0, t.n_bytes), t.dtype, t.shape) for n, t in header.items()}
    return json.loads((folder / "config.json").read_text()), tensors


def written(folder: Path, config: dict[str, Any], tensors: dict[str, Any]) -> Path:
    stored = {n: t if isinstance(t, tc.Stored) else tc.f32(np.ascontiguousarray(t)) for n, t in tensors.items()}
    return tc.Tiny(config, stored).write(folder)


# --- merged experts and the names of Llama's own files -----------------------------------------------------------------


def meta_named(*, transposed: bool, merged: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The Mixtral oracle under Meta's names; q and k rows go from halves back to pairs."""
    config, tensors = opened("mixtral_odd")
    n_heads, n_kv, d = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    renamed: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        for old, new in (
            ("model.embed_tokens", "tok_embeddings"),
            ("model.norm", "norm"),
            ("lm_head", "output"),
            ("model.layers", "layers"),
            ("input_layernorm", "attention_norm"),
            ("post_attention_layernorm", "ffn_norm"),
            ("self_attn.", "attention.w"),
            ("_proj", ""),
            ("block_sparse_moe", "feed_forward"),
        ):
            name = name.replace(old, new)  # the name so far
        if "attention.wq" in name or "attention.wk" in name:
            heads = n_heads if "wq" in name else n_kv
            value = value.reshape(heads, 2, d // 2, -1).swapaxes(1, 2).reshape(value.shape)
        renamed[name] = value
    if merged:
        for n in range(config["num_hidden_layers"]):
            for w in ("w1", "w2", "w3"):
                names = [f"layers.{n}.feed_forward.experts.{j}.{w}.weight" for j in range(config["num_local_experts"])]
                stack = np.stack([renamed.pop(name) for name in names])
                renamed[f"layers.{n}.feed_forward.{w}.weight"] = stack.swapaxes(1, 2) if transposed else stack
    return config, renamed


@pytest.mark.parametrize(("merged", "transposed"), [(False, False), (True, False), (True, True)])
def test_metas_names_and_merged_experts_are_read(tmp_path: Path, merged: bool, transposed: bool) -> None:
    model = load(written(tmp_path, *meta_named(merged=merged, transposed=transposed)))
    expected = load(ORACLES / "mixtral_odd")
    for layer in model.config.layers:
        assert isinstance(layer.mixer, Attention)
        assert layer.mixer.rope is not None
        assert layer.mixer.rope.pairing == "adjacent"
    got, wanted = bits(model), bits(expected)
    turned = {name for name in wanted if name.endswith(("attn.q.weight", "attn.k.weight"))}
    assert {n: b for n, b in got.items() if n not in turned} == {n: b for n, b in wanted.items() if n not in turned}
    # Adjacent pairs of permuted rows are the halves of the others: rotating each way gives the same, permuted.
    d = expected.config.layers[0].mixer.head_dim  # type: ignore[union-attr]  # attention, see above
    pairs = np.arange(d).reshape(2, d // 2).T.ravel()
    for name in turned:
        rows = expected.tensors[name].read().reshape(-1, d, expected.config.hidden_size)
        assert np.array_equal(rows[:, pairs].ravel(), model.tensors[name].read().ravel())


def test_merged_experts_under_hugging_face_names(tmp_path: Path) -> None:
    config, tensors = opened("mixtral_odd")
    for n in range(config["num_hidden_layers"]):
        old, new = f"model.layers.{n}.block_sparse_moe.", f"model.layers.{n}.feed_forward."
        for w in ("w1", "w2", "w3"):
            stack = [tensors.pop(f"{old}experts.{j}.{w}.weight") for j in range(config["num_local_experts"])]
            tensors[f"{new}{w}.weight"] = np.stack(stack)
        tensors[f"{new}gate.weight"] = tensors.pop(f"{old}gate.weight")
    assert bits(load(written(tmp_path, config, tensors))) == bits(load(ORACLES / "mixtral_odd"))


def test_merged_experts_whose_orientation_the_sizes_do_not_tell_are_refused(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    tiny.config["intermediate_size"] = tc.H
    for name in [n for n in tiny.tensors if ".experts." in n]:
        del tiny.tensors[name]
    tiny.rename(tc.MOE + "gate.weight", tc.LAYER + "feed_forward.gate.weight")
    for w in ("w1", "w2", "w3"):
        tiny.tensors[f"{tc.LAYER}feed_forward.{w}.weight"] = tc.f32(np.ones((tc.E, tc.H, tc.H)))
    with pytest.raises(CheckpointError, match="either orientation fits") as caught:
        load(tiny.write(tmp_path))
    assert "feed_forward.w1.weight" in caught.value.where
    assert "transposed = true" in caught.value.hint


def test_merged_experts_of_a_third_shape_are_refused(tmp_path: Path) -> None:
    config, tensors = meta_named(merged=True, transposed=False)
    name = "layers.0.feed_forward.w2.weight"
    tensors[name] = tensors[name].reshape(tensors[name].shape[0], -1, 4)
    with pytest.raises(CheckpointError, match=r"expected shape \[5, 72, 44\] from the configuration"):
        load(written(tmp_path, config, tensors))


# --- every per-expert family also with stacked experts --------------------------------------------------------------------

APART = ["qwen2_moe", "qwen3_moe", "olmoe", "flex_olmo", "deepseek", "deepseek_v2", "deepseek_v3", "phimoe", "lfm2_moe"]
APART += ["ernie4_5_moe", "glm4_moe", "minimax_m2", "afmoe", "hunyuan_v1_moe"]


@pytest.mark.parametrize("name", APART)
def test_stacked_experts_give_the_bits_of_separate_ones(tmp_path: Path, name: str) -> None:
    config, tensors = opened(name)
    modules = {n.split(".experts.")[0] for n in tensors if ".experts.0." in n}
    assert modules
    for module in modules:
        for gate, up, down in (("w1", "w3", "w2"), ("gate_proj", "up_proj", "down_proj")):
            n_experts = sum(n.startswith(f"{module}.experts.") and n.endswith(f".{gate}.weight") for n in tensors)
            parts = {
                w: np.stack([tensors.pop(f"{module}.experts.{j}.{w}.weight") for j in range(n_experts)])
                for w in (gate, up, down)
                if n_experts
            }
            if parts:
                tensors[f"{module}.experts.gate_up_proj"] = np.concatenate([parts[gate], parts[up]], axis=1)
                tensors[f"{module}.experts.down_proj"] = parts[down]
    assert bits(load(written(tmp_path, config, tensors))) == bits(load(ORACLES / name))


# --- small codes with scales ---------------------------------------------------------------------------------------------


def test_fp8_with_block_scales_is_code_times_scale(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    tiny = tc.llama()
    tiny.config |= {
        "intermediate_size": 200,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }
    codes = rng.integers(0, 256, (200, tc.H)).astype(np.uint8)
    codes[(codes & 127) == 127] = 0  # NaN
    scales = np.array([[0.25], [3.0]], np.float32)
    for name, shape in (("gate", (200, tc.H)), ("up", (200, tc.H)), ("down", (tc.H, 200))):
        values = codes if shape[0] == 200 else np.ascontiguousarray(codes.T)
        tiny.tensors[f"{tc.LAYER}mlp.{name}_proj.weight"] = tc.Stored("F8_E4M3", shape, values.tobytes())
        stored = scales if shape[0] == 200 else np.ascontiguousarray(scales.T)
        tiny.tensors[f"{tc.LAYER}mlp.{name}_proj.weight_scale_inv"] = tc.f32(stored)
    model = load(tiny.write(tmp_path))
    tensor = model.tensors["layers.0.ffn.gate.weight"]
    assert tensor.dtype == "f8_e4m3"
    got = tensor.read()
    for row, col in [(0, 0), (127, 3), (128, 3), (199, tc.H - 1)]:
        assert got[row, col] == np.float32(e4m3(int(codes[row, col]))) * scales[row // 128, 0]
    assert np.array_equal(model.tensors["layers.0.ffn.down.weight"].read(), got.T)


def e4m3(code: int) -> float:
    """One sign, four exponent (bias 7) and three mantissa bits, by the definition."""
    sign, exponent, mantissa = code >> 7, code >> 3 & 15, code & 7
    value = mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -value if sign else value


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weight_scale_inv": tc.f32(np.ones((1, 1), np.float32))}, r"scales of shape \[2, 1\]"),
        ({"weight_scale_inv": tc.Stored("F16", (2, 1), bytes(4))}, "F32 scales"),
        ({}, "F8_E4M3"),
    ],
)
def test_fp8_with_other_scales_is_refused(tmp_path: Path, change: dict[str, tc.Stored], said: str) -> None:
    tiny = tc.llama()
    tiny.config["intermediate_size"] = 200
    name = f"{tc.LAYER}mlp.gate_proj."
    tiny.tensors[name + "weight"] = tc.Stored("F8_E4M3", (200, tc.H), bytes(200 * tc.H))
    tiny.tensors |= {name + key: value for key, value in change.items()}
    with pytest.raises(CheckpointError, match=said):
        load(tiny.write(tmp_path))


_FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def mxfp4_gpt_oss(folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """A gpt-oss of hidden size 32 with packed experts, and what their bytes mean."""
    rng = np.random.default_rng(6)
    config, _ = opened("gpt_oss")
    e, h, width, heads, kv, d = 5, 32, 32, 4, 2, 12
    config |= {
        "hidden_size": h,
        "intermediate_size": width,
        "num_hidden_layers": 1,
        "layer_types": ["sliding_attention"],
    }
    config["quantization_config"] = {"quant_method": "mxfp4"}
    shapes = {
        "model.embed_tokens.weight": (96, h),
        "lm_head.weight": (96, h),
        "model.norm.weight": (h,),
        tc.LAYER + "input_layernorm.weight": (h,),
        tc.LAYER + "post_attention_layernorm.weight": (h,),
        tc.LAYER + "self_attn.sinks": (heads,),
        tc.LAYER + "self_attn.q_proj.weight": (heads * d, h),
        tc.LAYER + "self_attn.q_proj.bias": (heads * d,),
        tc.LAYER + "self_attn.o_proj.weight": (h, heads * d),
        tc.LAYER + "self_attn.o_proj.bias": (h,),
        tc.LAYER + "mlp.router.weight": (e, h),
        tc.LAYER + "mlp.router.bias": (e,),
        tc.LAYER + "mlp.experts.gate_up_proj_bias": (e, 2 * width),
        tc.LAYER + "mlp.experts.down_proj_bias": (e, h),
    }
    for name in ("k", "v"):
        shapes[f"{tc.LAYER}self_attn.{name}_proj.weight"] = (kv * d, h)
        shapes[f"{tc.LAYER}self_attn.{name}_proj.bias"] = (kv * d,)
    tensors: dict[str, Any] = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    meant = {}
    for name, rows, cols in (("gate_up_proj", 2 * width, h), ("down_proj", h, width)):
        codes = rng.integers(0, 256, (e, rows, cols // 32, 16), dtype=np.uint8)
        exponents = rng.integers(120, 130, (e, rows, cols // 32), dtype=np.uint8)
        values = np.zeros((e, rows, cols), np.float32)
        for index in np.ndindex(e, rows, cols):
            byte = int(codes[index[0], index[1], index[2] // 32, index[2] % 32 // 2])
            nibble = byte >> 4 if index[2] % 2 else byte & 15
            sign = -1 if nibble & 8 else 1
            values[index] = sign * _FP4[nibble & 7] * 2.0 ** (int(exponents[index[0], index[1], index[2] // 32]) - 127)
        meant[name] = values
        tensors[f"{tc.LAYER}mlp.experts.{name}_blocks"] = tc.Stored("U8", codes.shape, codes.tobytes())
        tensors[f"{tc.LAYER}mlp.experts.{name}_scales"] = tc.Stored("U8", exponents.shape, exponents.tobytes())
    return written(folder, config, tensors), meant


def test_mxfp4_of_gpt_oss_is_code_times_power_of_two(tmp_path: Path) -> None:
    folder, meant = mxfp4_gpt_oss(tmp_path)
    model = load(folder)
    for j in range(5):
        target = f"layers.0.experts.{j}."
        assert model.tensors[target + "gate.weight"].dtype == "mxfp4"
        assert np.array_equal(model.tensors[target + "gate.weight"].read(), meant["gate_up_proj"][j, 0::2])
        assert np.array_equal(model.tensors[target + "up.weight"].read(), meant["gate_up_proj"][j, 1::2])
        assert np.array_equal(model.tensors[target + "down.weight"].read(), meant["down_proj"][j])


# --- parts of larger models, and tensors that are not used --------------------------------------------------------------------


def test_the_text_model_of_a_llama_4_with_vision(tmp_path: Path) -> None:
    config, tensors = opened("llama4")
    nested = {"architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4", "text_config": config}
    del config["architectures"]
    wrapped: dict[str, Any] = {f"language_model.{n}": t for n, t in tensors.items()}
    wrapped["vision_model.patch.weight"] = wrapped["multi_modal_projector.linear_1.weight"] = np.ones((2, 2))
    model, expected = load(written(tmp_path, nested, wrapped)), load(ORACLES / "llama4")
    assert model.config == expected.config
    assert bits(model) == bits(expected)
    assert list(model.skipped) == ["vision_model.patch.weight", "multi_modal_projector.linear_1.weight"]


@pytest.mark.parametrize("name", ["deepseek_v3", "glm4_moe"])
def test_layers_that_predict_further_tokens_are_skipped_and_said(tmp_path: Path, name: str) -> None:
    config, tensors = opened(name)
    n_layers = config["num_hidden_layers"]
    extra = f"model.layers.{n_layers}.eh_proj.weight"
    config["num_nextn_predict_layers"] = 1
    model = load(written(tmp_path / "a", config, {**tensors, extra: np.ones((3, 3))}))
    assert bits(model) == bits(load(ORACLES / name))
    assert list(model.skipped) == [extra]
    beyond = f"model.layers.{n_layers + 1}.eh_proj.weight"
    with pytest.raises(CheckpointError, match="left over"):
        load(written(tmp_path / "b", config, {**tensors, beyond: np.ones((3, 3))}))


def test_noise_of_a_gate_in_training_is_skipped(tmp_path: Path) -> None:
    assert [name.rsplit(".", 2)[-2] for name in load(ORACLES / "llama_moe").skipped] == ["weight_noise"] * 2


@pytest.mark.parametrize("key", ["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"])
def test_the_number_of_experts_goes_by_any_of_its_names(tmp_path: Path, key: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(ORACLES / "qwen3_moe", folder)
    config = json.loads((folder / "config.json").read_text())
    config[key] = next(config.pop(k) for k in ("num_local_experts", "num_experts") if k in config)
    (folder / "config.json").write_text(json.dumps(config))
    assert load(folder).config == load(ORACLES / "qwen3_moe").config
