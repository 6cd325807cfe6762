# SPDX-License-Identifier: Apache-2.0
"""Config values that a family cannot have, and variants that would be another model than they say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import tiny_checkpoint as tc

from colibri.errors import CheckpointError
from colibri.importers import load

ORACLES = Path(__file__).parents[1] / "oracles" / "data"

BAD_VALUES: list[tuple[str, str, object, str]] = [
    # oracle, key (dots lead inwards), value, what the message says
    ("qwen2", "sliding_window", None, "a number, as layer_types has sliding layers"),
    ("qwen2", "layer_types", ["full_attention"], "2 names of kinds of layers, one a layer"),
    ("qwen2", "layer_types", ["full_attention", "linear_attention"], "'linear_attention'"),
    ("qwen2", "layer_types", ["full_attention", 3], "one a layer"),
    ("qwen2_moe", "decoder_sparse_step", 0, "from 1 to"),
    ("qwen2_moe", "mlp_only_layers", "0", "a list of layers"),
    ("qwen2_moe", "shared_expert_intermediate_size", 0, "from 1 to"),
    ("qwen2_moe", "norm_topk_prob", 1, "true or false"),
    ("olmoe", "clip_qkv", -1.0, "a number from"),
    ("olmoe", "clip_qkv", "0.8", "the string '0.8'"),
    ("deepseek", "scoring_func", "sigmoid", "'softmax', got the string 'sigmoid'"),
    ("deepseek", "moe_layer_freq", 0, "from 1 to"),
    ("deepseek", "n_shared_experts", 65536, "at most 65536 elements together"),
    ("deepseek_v2", "norm_topk_prob", True, "norm_topk_prob: expected false"),
    ("deepseek_v2", "topk_method", "noaux_tc", "'greedy' or 'group_limited_greedy'"),
    ("deepseek_v2", "qk_rope_head_dim", 5, "an even number"),
    ("deepseek_v2", "kv_lora_rank", 0, "from 1 to"),
    ("deepseek_v2", "v_head_dim", 65536, "at most 65536 elements in all heads"),
    ("deepseek_v2_groups", "n_group", 4, "a divisor of the number of experts, 9"),
    ("deepseek_v2_groups", "topk_group", 4, "from 1 to 3"),
    ("deepseek_v3", "topk_group", 0, "from 1 to 4"),
    ("deepseek_v3", "n_group", 12, "groups of at least two experts"),
    ("deepseek_v3", "num_experts_per_tok", 7, "groups that hold 7 experts together"),
    ("deepseek_v3", "scoring_func", "softmax", "'sigmoid'"),
    ("deepseek_v3", "routed_scaling_factor", 0, "a number from"),
    ("granitemoe", "logits_scaling", 0, "a number from"),
    ("granitemoe", "residual_multiplier", -0.5, "a number from"),
    ("phimoe", "num_experts_per_tok", 3, "sparsemixer picks two"),
    ("phimoe", "router_jitter_noise", 2.0, "a number from 0 to 1"),
    ("phimoe_longrope", "rope_parameters.short_factor", [1.0] * 4, "5 positive numbers"),
    ("phimoe_longrope", "rope_parameters.short_factor", [1.0, 1, 1, 1, -1], "5 positive numbers"),
    ("phimoe_longrope", "rope_parameters.short_mscale", 0, "a number from"),
    ("gpt_oss", "swiglu_limit", 0, "a number from"),
    ("gpt_oss", "rope_parameters.beta_fast", 0, "a number from"),
    ("llama4", "no_rope_layers", [1, 0], "4 times 0 or 1, one a layer"),
    ("llama4", "no_rope_layers", [1, 1, 1, "0"], "one a layer"),
    ("llama4", "moe_layers", [4], "a list of layers below 4"),
    ("llama4", "attention_chunk_size", None, "layer_types has chunked layers"),
    ("llama4", "floor_scale", 0, "from 1 to"),
    ("lfm2_moe", "layer_types", None, "3 names of kinds of layers"),
    ("lfm2_moe", "conv_L_cache", 65, "from 1 to 64"),
    ("ernie4_5_moe", "use_bias", True, "false"),
    ("ernie4_5_moe", "moe_norm_min", 1e-14, "a number from"),
    ("glm4_moe", "rope_parameters.partial_rotary_factor", 0.1, "an even number of the 12 dimensions"),
    ("minimax_m2", "rotary_dim", 14, "from 2 to 12"),
    ("minimax_m2", "rotary_dim", 7, "an even number"),
    ("afmoe", "route_norm", False, "route_norm: expected true"),
    ("afmoe", "score_func", "softmax", "'sigmoid'"),
    ("afmoe", "sliding_window", None, "layer_types has sliding layers"),
    ("hunyuan_v1_moe", "moe_topk", [2], "2 numbers, one a layer"),
    ("hunyuan_v1_moe", "rope_parameters", {"rope_type": "dynamic", "factor": 2.0}, "length of the sequence"),
    ("dbrx", "tie_word_embeddings", True, "false, as in every model"),
    ("dbrx", "attn_config.kv_n_heads", 3, "a divisor of n_heads, 4"),
    ("dbrx", "attn_config.clip_qkv", 0, "a number from"),
    ("dbrx", "ffn_config.moe_normalize_expert_weights", 1.5, "the order of a norm"),
    ("dbrx", "ffn_config.moe_top_k", 6, "from 1 to 5"),
    ("dbrx", "ffn_config", [], "an object or null"),
    ("dbrx", "n_heads", 3, "n_heads: expected a divisor of hidden_size"),
    ("jetmoe", "kv_channels", 7, "an even number"),
    ("jetmoe", "activation_function", "tanh", "one of silu"),
    ("llama_moe", "size_experts", [[10, 12, 14, 12]], "2 values, one a layer"),
    ("llama_moe", "size_experts", [[10, 12, 14, 12], [16, 8, 12, 13]], "4 widths a layer that make 48 together"),
    ("llama_moe", "size_experts", [[10, 12, 14, 12], [16, 8, 24]], "4 widths a layer"),
    ("llama_moe", "gate_network", "conv", "'mlp' or 'linear'"),
    ("llama_moe", "score_scale_factor", [1.0], "2 values, one a layer"),
    ("llama_moe", "calculator_type", "SwitchDropTokenCalculator", "'UniversalCalculator'"),
]


@pytest.mark.parametrize(("oracle", "key", "value", "said"), BAD_VALUES, ids=lambda v: json.dumps(v)[:40])
def test_a_bad_value_is_named(tmp_path: Path, oracle: str, key: str, value: object, said: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(ORACLES / oracle, folder)
    config = json.loads((folder / "config.json").read_text())
    *outer, last = key.split(".")
    at = config
    for step in outer:
        at = at[step]
    at[last] = value
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    assert "config.json: " in caught.value.where
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("max_positions", [65, 128, 4096])
def test_phimoe_ends_where_its_short_table_ends(tmp_path: Path, max_positions: int) -> None:
    # Past the context length of training the published model changes its table: that would be another model.
    folder = tmp_path / "copy"
    shutil.copytree(ORACLES / "phimoe_longrope", folder)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = max_positions
    (folder / "config.json").write_text(json.dumps(config))
    assert load(folder).config.max_seq == 64


def test_a_fixed_alpha_of_hunyuan_is_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(ORACLES / "hunyuan_v1_moe", folder)
    config = json.loads((folder / "config.json").read_text())
    del config["rope_parameters"]
    config |= {"rope_theta": 100.0, "rope_scaling": {"type": "dynamic", "alpha": 8.0, "factor": 1.0}}
    (folder / "config.json").write_text(json.dumps(config))
    rope = load(folder).config.layers[0].mixer.rope  # type: ignore[union-attr]  # attention
    assert rope is not None
    theta = 100.0 * 8.0 ** (12 / 10)
    assert rope.inv_freq == pytest.approx([theta ** (-i / 6) for i in range(6)], rel=1e-6)


# --- the container, where the reference reader accepts what a model cannot use --------------------------------------------


def test_an_empty_container_has_no_tensors(tmp_path: Path) -> None:
    folder = tc.mixtral().write(tmp_path)
    (folder / "model.safetensors").write_bytes(tc.container(b"{}", b""))
    with pytest.raises(CheckpointError, match="no tensor of that name"):
        load(folder)


def test_spaces_after_the_header_are_padding(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    folder = tiny.write(tmp_path)
    header = json.dumps(tc.safetensors_header(tiny.tensors)).encode() + b" " * 7
    data = b"".join(t.data for t in tiny.tensors.values())
    (folder / "model.safetensors").write_bytes(tc.container(header, data))
    assert load(folder).config.hidden_size == tc.H


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 5)])
def test_scalars_and_empty_tensors_are_no_weights(tmp_path: Path, shape: tuple[int, ...]) -> None:
    tiny = tc.mixtral()
    tiny.tensors["extra"] = tc.Stored("F32", shape, bytes(4) if not shape else b"")
    with pytest.raises(CheckpointError, match="'extra' left over"):
        load(tiny.write(tmp_path / "a"))
    del tiny.tensors["extra"]
    tiny.tensors["model.norm.weight"] = tc.Stored("F32", shape, bytes(4) if not shape else b"")
    with pytest.raises(CheckpointError, match=r"expected shape \[8\]"):
        load(tiny.write(tmp_path / "b"))
