# SPDX-License-Identifier: Apache-2.0
"""Bad checkpoints: one rule broken each, refused with a message that names the place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_checkpoint as tc

from colibri.errors import CheckpointError, ColibriError, UsageError
from colibri.importers import AS_IT_SAYS, load
from colibri.importers import safetensors as st
from colibri.importers.files import opened, read_range
from colibri.model import Reading


def read_all(path: Path, reading: Reading = AS_IT_SAYS) -> None:
    for tensor in load(path, reading):
        tensor.read()


def refusal(path: Path, reading: Reading = AS_IT_SAYS) -> ColibriError:
    """Load a checkpoint and read all of it; return the error."""
    with pytest.raises(ColibriError) as caught:
        read_all(path, reading)
    error = caught.value
    assert error.where
    assert error.expected
    assert error.got
    assert error.hint
    assert str(error).isprintable()
    return error


def check(path: Path, where: str, said: str) -> None:
    error = refusal(path)
    assert isinstance(error, CheckpointError)
    assert error.exit_code == 3
    assert where in error.where
    assert said in str(error)


# --- config.json: a value -------------------------------------------------------------------------------------------

BAD_VALUES: list[tuple[str, object, str]] = [
    # key, value, what the message says
    ("hidden_size", "8", "the string '8'"),
    ("hidden_size", 8.0, "8.0"),
    ("hidden_size", 1e9, "1000000000.0"),
    ("hidden_size", -8, "-8"),
    ("hidden_size", 0, "got 0"),
    ("hidden_size", True, "true"),
    ("hidden_size", None, "null"),
    ("hidden_size", [8], "a list"),
    ("hidden_size", {}, "an object"),
    ("hidden_size", 65537, "65536"),
    ("intermediate_size", 65537, "65536"),
    ("vocab_size", -1, "-1"),
    ("vocab_size", 2**31, "2147483647"),
    ("num_hidden_layers", 0, "got 0"),
    ("num_hidden_layers", 2**53, "65536"),
    ("num_attention_heads", 0, "got 0"),
    ("num_attention_heads", 3, "divisor of hidden_size"),
    ("num_attention_heads", 8, "even number"),
    ("num_key_value_heads", 3, "from 1 to 2"),
    ("num_key_value_heads", True, "true"),
    ("head_dim", 3, "even number"),
    ("head_dim", "4", "the string '4'"),
    ("head_dim", 65536, "65536 elements in all heads"),
    ("num_local_experts", 0, "got 0"),
    ("num_local_experts", 2**60, "9007199254740992"),
    ("num_experts", 3, "the same as num_local_experts"),
    ("num_experts_per_tok", 0, "got 0"),
    ("num_experts_per_tok", 3, "from 1 to 2"),
    ("max_position_embeddings", 0, "got 0"),
    ("max_position_embeddings", 2**24 + 1, "16777216"),
    ("rms_norm_eps", 0, "a number from"),
    ("rms_norm_eps", 2.0**-41, "a number from 9.09495e-13"),
    ("rms_norm_eps", "1e-5", "the string '1e-5'"),
    ("rms_norm_eps", True, "true"),
    ("hidden_act", "tanh", "one of silu"),
    ("hidden_act", None, "null"),
    ("sliding_window", 0, "got 0"),
    ("sliding_window", 4.5, "4.5"),
    ("layer_types", ["sliding_attention"], "layer_types has sliding layers"),
    ("layer_types", ["chunked_attention"], "names among full_attention"),
    ("layer_types", ["full_attention"] * 2, "one a layer"),
    ("layer_types", "full_attention", "one a layer"),
    ("layer_types", 3, "one a layer"),
    ("tie_word_embeddings", 1, "true or false"),
    ("bos_token_id", 6, "0 to 5"),
    ("bos_token_id", [1, 2], "one token id"),
    ("eos_token_id", [2, -1], "-1"),
    ("eos_token_id", "2", "the string '2'"),
    ("eos_token_id", True, "true"),
    ("model_type", "gpt2", "the string 'gpt2'"),
    ("model_type", 3, "got 3"),
    ("model_type", "mixtral\n\x1b[31m", "mixtral\\n\\x1b[31m"),
    ("architectures", ["MixtralForSequenceClassification"], "MixtralForCausalLM"),
    ("architectures", [], "a list"),
    ("architectures", "MixtralForCausalLM", "the string"),
    ("architectures", [["x"]], "a list"),
    ("quantization_config", {"quant_method": "gptq"}, "the string 'gptq'"),
    ("quantization_config", "fp8", "weight_block_size of 128 x 128"),
    ("quantization_config", {"quant_method": "fp8", "weight_block_size": [64, 64]}, "weight_block_size"),
    ("rope_theta", 500000.0, "10000.0 as rope_parameters.rope_theta says"),
    ("rope_parameters", [], "an object or null"),
    ("rope_parameters", {"rope_theta": 0.5}, "a number from 1"),
    ("rope_parameters", {"rope_theta": "1e4"}, "the string '1e4'"),
    ("rope_parameters", {"rope_theta": 1e300}, "1e+300"),
    ("rope_parameters", {"rope_type": 4}, "a string"),
    ("rope_parameters", {"rope_type": "proportional", "factor": 4.0}, "does not implement"),
    ("rope_parameters", {"rope_type": "yarn"}, "no such key"),
    ("rope_parameters", {"rope_type": "yarn", "factor": 4.0, "truncate": 1}, "true or false"),
    ("rope_parameters", {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1}, "more than 1"),
    ("rope_parameters", {"rope_type": "dynamic", "factor": 4.0}, "length of the sequence"),
    ("rope_parameters", {"rope_type": "longrope"}, "2 positive numbers"),
    ("rope_parameters", {"rope_type": "longrope", "short_factor": [1, 0]}, "2 positive numbers"),
    ("rope_parameters", {"type": "su"}, "'su': it is unknown"),
    ("rope_parameters", {"rope_type": "linear"}, "no such key"),
    ("rope_parameters", {"rope_type": "linear", "factor": 0}, "got 0"),
    ("rope_parameters", {"rope_type": "linear", "factor": "2"}, "the string '2'"),
    ("rope_parameters", {"rope_type": "linear", "type": "default", "factor": 2}, "the same type"),
    ("rope_parameters", {"rope_type": "llama3", "factor": 2}, "no such key"),
    (
        "rope_parameters",
        {"rope_type": "llama3", "factor": 2, "low_freq_factor": 4, "high_freq_factor": 4},
        "more than low_freq_factor",
    ),
    ("rope_parameters", {"partial_rotary_factor": 0.5}, "every dimension"),
    ("rope_parameters", {"full_attention": {"rope_theta": 1e4}}, "for all layers"),
    ("rope_scaling", {"rope_type": "linear", "factor": 2.0}, "the same type"),
    ("rope_scaling", "linear", "an object or null"),
    ("partial_rotary_factor", 0.5, "every dimension"),
]


@pytest.mark.parametrize(("key", "value", "said"), BAD_VALUES, ids=lambda v: json.dumps(v)[:40])
def test_a_bad_config_value_is_named(tmp_path: Path, key: str, value: object, said: str) -> None:
    tiny = tc.mixtral()
    tiny.config[key] = value
    check(tiny.write(tmp_path), "config.json", said)


def test_kv_heads_must_divide_the_heads(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    tiny.config |= {"num_attention_heads": 4, "num_key_value_heads": 3}
    check(tiny.write(tmp_path), "num_key_value_heads", "divisor of num_attention_heads, 4")


@pytest.mark.parametrize(
    ("key", "value", "tensor", "expected", "got"),
    [
        ("hidden_size", 16, "model.embed_tokens.weight", "[6, 16]", "[6, 8]"),
        ("vocab_size", 7, "model.embed_tokens.weight", "[7, 8]", "[6, 8]"),
        ("intermediate_size", 6, tc.MOE + "experts.0.w1.weight", "[6, 8]", "[4, 8]"),
        ("head_dim", 8, tc.LAYER + "self_attn.q_proj.weight", "[16, 8]", "[8, 8]"),
        ("num_key_value_heads", 2, tc.LAYER + "self_attn.k_proj.weight", "[8, 8]", "[4, 8]"),
        ("num_local_experts", 3, tc.MOE + "gate.weight", "[3, 8]", "[2, 8]"),
    ],
)
def test_a_config_that_contradicts_a_shape(
    tmp_path: Path, key: str, value: int, tensor: str, expected: str, got: str
) -> None:
    tiny = tc.mixtral()
    tiny.config[key] = value
    error = refusal(tiny.write(tmp_path))
    assert f"'{tensor}'" in error.where
    assert expected in error.expected
    assert got in error.got


def test_a_config_may_claim_more_layers_than_memory_holds(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    tiny.config["num_hidden_layers"] = 65536
    error = refusal(tiny.write(tmp_path))
    assert "'model.layers.1.input_layernorm.weight'" in error.expected


# --- config.json and generation_config.json: the text ----------------------------------------------------------------

BAD_JSON: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "an empty file"),
    "not JSON": (b"{'a': 1}", "line 1 column 2"),
    "cut short": (b'{"a": 1', "valid JSON"),
    "not an object": (b"[1]", "another JSON value"),
    "not UTF-8": (b'{"a": "\xff"}', "byte 7 is not"),
    "UTF-16": ("{}".encode("utf-16"), "UTF-8"),
    "a duplicate key": (b'{"a": 1, "a": 1}', "'a' twice"),
    "NaN": (b'{"a": NaN}', "NaN"),
    "Infinity": (b'{"a": -Infinity}', "-Infinity"),
    "a number beyond float64": (b'{"a": 1e999}', "finite numbers"),
    "an integer beyond 2**53": (b'{"a": 9007199254740993}', "16 digits"),
    "an integer of many digits": (b'{"a": ' + b"9" * 100_000 + b"}", "100000 digits"),
    "nesting too deep for the parser": (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deeper nesting"),
    "nesting too deep for us": (b'{"a": ' + b"[" * 70 + b"]" * 70 + b"}", "deeper nesting"),
}


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("rule", BAD_JSON)
def test_json_text_is_strict(tmp_path: Path, file: str, rule: str) -> None:
    text, said = BAD_JSON[rule]
    tiny = tc.mixtral()
    tiny.files[file] = text
    check(tiny.write(tmp_path), file, said)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"temperature": -1}', "temperature"),
        ('{"temperature": "1"}', "temperature"),
        ('{"top_k": -1}', "top_k"),
        ('{"top_k": 2.5}', "top_k"),
        ('{"top_p": 1.5}', "top_p"),
        ('{"do_sample": 1}', "do_sample"),
        ('{"eos_token_id": 6}', "eos_token_id"),
        ('{"eos_token_id": {}}', "eos_token_id"),
        ('{"bos_token_id": -1}', "bos_token_id"),
    ],
)
def test_a_bad_sampling_default_is_named(tmp_path: Path, text: str, key: str) -> None:
    tiny = tc.mixtral()
    tiny.files["generation_config.json"] = text.encode()
    check(tiny.write(tmp_path), f"generation_config.json: {key}", "expected")


# --- the container ----------------------------------------------------------------------------------------------------

Header = dict[str, Any]
FIRST, SECOND = "model.embed_tokens.weight", tc.LAYER + "input_layernorm.weight"


def edit(change: Callable[[Header], object]) -> Callable[[Header, bytes], bytes]:
    """Return a file whose header had `change` made to it."""

    def build(header: Header, data: bytes) -> bytes:
        change(header)
        return tc.container(json.dumps(header).encode(), data)

    return build


def entry(name: str, **values: object) -> Callable[[Header, bytes], bytes]:
    return edit(lambda header: header[name].update(values))


def raw(change: Callable[[bytes, bytes], bytes]) -> Callable[[Header, bytes], bytes]:
    return lambda header, data: change(json.dumps(header).encode(), data)


# rule: (how the file comes about, what `where` names, what the message says)
BAD_CONTAINERS: dict[str, tuple[Callable[[Header, bytes], bytes], str, str]] = {
    "an empty file": (raw(lambda h, d: b""), "model.safetensors", "a file of 0"),
    "seven bytes": (raw(lambda h, d: b"\1" * 7), "model.safetensors", "a file of 7"),
    "a header longer than allowed": (
        raw(lambda h, d: (100_000_001).to_bytes(8, "little") + h + d),
        "model.safetensors",
        "at most 100000000",
    ),
    "a header length of all ones": (raw(lambda h, d: b"\xff" * 8 + h), "model.safetensors", "18446744073709551615"),
    "a header past the end": (raw(lambda h, d: tc.container(h, d)[:100]), "model.safetensors", "cut short"),
    "a header of no bytes": (raw(lambda h, d: tc.container(b"", d)), "model.safetensors", "begins with '{'"),
    "a header that begins with a space": (raw(lambda h, d: tc.container(b" " + h, d)), "model.safetensors", "'{'"),
    "a header with a duplicate tensor": (
        raw(lambda h, d: tc.container(h[:-1] + b', "lm_head.weight": {}}', d)),
        "header",
        "'lm_head.weight' twice",
    ),
    "a header of another kind": (raw(lambda h, d: tc.container(b"{]", d)), "header", "valid JSON"),
    "a header nested too deep": (
        raw(lambda h, d: tc.container(b'{"a":' + b"[" * 200_000, d)),
        "header",
        "deeper nesting",
    ),
    "a header that is not UTF-8": (
        raw(lambda h, d: tc.container(h.replace(b"F32", b"F\xff2", 1), d)),
        "header",
        "UTF-8",
    ),
    "metadata that is not an object": (edit(lambda h: h.update(__metadata__=[])), "header", "strings only"),
    "metadata that is not a string": (edit(lambda h: h.update(__metadata__={"a": 1})), "header", "strings only"),
    "a tensor that is not an object": (edit(lambda h: h.update({FIRST: 1})), FIRST, "dtype, shape and data_offsets"),
    "a tensor with a key too many": (entry(FIRST, strides=[8, 1]), FIRST, "no other key"),
    "a tensor with a key too few": (edit(lambda h: h[FIRST].pop("dtype")), FIRST, "no other key"),
    "an unknown dtype": (entry(FIRST, dtype="F33"), FIRST, "'F33'"),
    "a dtype that is not a string": (entry(FIRST, dtype=["F32"]), FIRST, "a list"),
    "a shape that is not a list": (entry(FIRST, shape=48), FIRST, "whole numbers"),
    "a negative dimension": (entry(FIRST, shape=[-6, -8]), FIRST, "whole numbers"),
    "a dimension that is not an integer": (entry(FIRST, shape=[6.0, 8]), FIRST, "whole numbers"),
    "a dimension that is a boolean": (entry(FIRST, shape=[True, 48]), FIRST, "whole numbers"),
    "a dimension beyond 2**53": (entry(FIRST, shape=[2**62, 8]), "header", "9007199254740992"),
    "too many dimensions": (entry(FIRST, shape=[6, 8, *[1] * 7]), FIRST, "at most 8"),
    "one offset": (entry(FIRST, data_offsets=[0]), FIRST, "two whole numbers"),
    "offsets that run backwards": (entry(FIRST, data_offsets=[192, 0]), FIRST, "begin <= end"),
    "a negative offset": (entry(FIRST, data_offsets=[-192, 0]), FIRST, "two whole numbers"),
    "offsets that do not fit the shape": (entry(FIRST, shape=[6, 9]), FIRST, "F32 [6, 9]"),
    "offsets that do not fit the dtype": (entry(FIRST, dtype="F16"), FIRST, "F16 [6, 8]"),
    "an offset past the end": (
        entry("lm_head.weight", data_offsets=[10**12, 10**12 + 192]),
        "lm_head",
        "within the file",
    ),
    "a gap": (edit(lambda h: h.pop(SECOND)), tc.LAYER + "self_attn.q_proj.weight", "a gap"),
    "an overlap": (entry(SECOND, data_offsets=[160, 192]), SECOND, "an overlap"),
    "an alias": (edit(lambda h: h.update({"alias": h[FIRST]})), "", "an overlap"),
    "a byte left over": (raw(lambda h, d: tc.container(h, d + b"\0")), "model.safetensors", "last byte"),
    "a byte missing": (raw(lambda h, d: tc.container(h, d[:-1])), "lm_head.weight", "within the file"),
    "half a surrogate pair": (
        raw(lambda h, d: tc.container(h.replace(b"lm_head", b"\\ud800"), d)),
        "\\ud800.weight",
        "surrogate",
    ),
    "a control character in a name": (
        raw(lambda h, d: tc.container(h.replace(b"lm_head", b"\\u001b[2J"), d)),
        "",
        "'lm_head.weight'",
    ),
    "a pickle": (raw(lambda h, d: b"\x80\x02}q\x00." + d), "model.safetensors", "pickle"),
    "a zip archive": (raw(lambda h, d: b"PK\x03\x04" + d), "model.safetensors", "torch.save"),
    "a Git LFS pointer": (
        raw(lambda h, d: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
        "model.safetensors",
        "Git LFS",
    ),
    "a GGUF file": (raw(lambda h, d: b"GGUF" + d), "model.safetensors", "GGUF"),
}


@pytest.mark.parametrize("rule", BAD_CONTAINERS)
def test_a_bad_container_is_refused(tmp_path: Path, rule: str) -> None:
    build, where, said = BAD_CONTAINERS[rule]
    tiny = tc.mixtral()
    data = b"".join(t.data for t in tiny.tensors.values())
    folder = tiny.write(tmp_path)
    (folder / "model.safetensors").write_bytes(build(tc.safetensors_header(tiny.tensors), data))
    check(folder, where, said)


def test_a_file_that_changes_under_us_is_noticed(tmp_path: Path) -> None:
    tensor = load(tc.mixtral().write(tmp_path)).tensors["head.weight"]
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(CheckpointError, match="it changed while being read"):
        tensor.read()
    path.write_bytes(path.read_bytes() + bytes(4))
    with pytest.raises(CheckpointError, match="it changed while being read"):
        tensor.read()
    path.unlink()
    with pytest.raises(CheckpointError, match="no such file"):
        tensor.read()


def test_a_file_that_ends_early_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(8))
    with opened(path) as (_, state):
        pass
    with pytest.raises(CheckpointError, match="it changed while being read"):
        list(read_range(path, state, 4, 5))


def test_the_header_limit_is_that_of_the_reference_reader() -> None:
    assert st.MAX_HEADER_BYTES == 100_000_000


# --- tensors ------------------------------------------------------------------------------------------------------------


def without(name: str) -> Callable[[tc.Tiny], object]:
    return lambda tiny: tiny.tensors.pop(name)


def extra(name: str, dtype: str = "F32") -> Callable[[tc.Tiny], object]:
    return lambda tiny: tiny.tensors.update({name: tc.Stored(dtype, (1,), bytes(st.BITS_OF_DTYPE[dtype] // 8))})


def value(name: str, index: int, bits: int) -> Callable[[tc.Tiny], None]:
    def change(tiny: tc.Tiny) -> None:
        stored = tiny.tensors[name]
        values = np.frombuffer(stored.data, "<u4").copy()
        values[index] = bits
        stored.data = values.tobytes()

    return change


def typed(name: str, dtype: str) -> Callable[[tc.Tiny], None]:
    def change(tiny: tc.Tiny) -> None:
        stored = tiny.tensors[name]
        n = int(np.prod(stored.shape))
        tiny.tensors[name] = tc.Stored(dtype, stored.shape, bytes(n * st.BITS_OF_DTYPE[dtype] // 8))

    return change


def tied_but_different(tiny: tc.Tiny) -> None:
    tiny.config["tie_word_embeddings"] = True


def half_stacked(tiny: tc.Tiny) -> None:
    tiny.tensors[tc.MOE + "experts.gate_up_proj"] = tc.f32(np.zeros((tc.E, 2 * tc.WIDTH, tc.H)))
    tiny.tensors[tc.MOE + "experts.down_proj"] = tc.f32(np.zeros((tc.E, tc.H, tc.WIDTH)))


def stacked_transposed(tiny: tc.Tiny) -> None:
    for name in [n for n in tiny.tensors if ".experts." in n]:
        del tiny.tensors[name]
    tiny.tensors[tc.MOE + "experts.gate_up_proj"] = tc.f32(np.zeros((tc.E, tc.H, 3 * tc.WIDTH)))


NAN, INF, BIG, HEAD = 0x7FC00000, 0xFF800000, 0xD8800000, "lm_head.weight"

BAD_TENSORS: dict[str, tuple[Callable[[tc.Tiny], object], str, str]] = {
    "the embedding missing": (without(FIRST), "model.safetensors", f"'{FIRST}' of shape [6, 8]"),
    "an untied head missing": (without(HEAD), "model.safetensors", "'lm_head.weight'"),
    "the router missing": (without(tc.MOE + "gate.weight"), "model.safetensors", "block_sparse_moe.gate.weight"),
    "an expert missing": (without(tc.MOE + "experts.1.w2.weight"), "model.safetensors", "experts.1.w2.weight"),
    "a bias left over": (extra(tc.LAYER + "self_attn.q_proj.bias"), "self_attn.q_proj.bias", "left over"),
    "an expert left over": (extra(tc.MOE + "experts.2.w1.weight"), "experts.2.w1.weight", "left over"),
    "a layer left over": (extra("model.layers.1.input_layernorm.weight"), "layers.1.input_layernorm", "left over"),
    "both expert layouts": (half_stacked, "experts.0.w1.weight", "and 5 more left over"),
    "experts stacked another way": (stacked_transposed, "experts.gate_up_proj", "[2, 8, 12]"),
    "a tied head that differs": (tied_but_different, HEAD, "a copy of"),
    "a NaN": (value(HEAD, 10, NAN), HEAD, "nan at 'head.weight'[1, 2]"),
    "an infinity": (value(FIRST, 47, INF), FIRST, "-inf at 'embed.weight'[5, 7]"),
    "a weight of 2**50": (value("model.norm.weight", 3, BIG), "model.norm.weight", "'final_norm.weight'[3]"),
    "a NaN in an expert": (
        value(tc.MOE + "experts.1.w2.weight", 5, NAN),
        "experts.1.w2",
        "experts.1.down.weight'[1, 1]",
    ),
    "weights in F64": (typed(HEAD, "F64"), HEAD, "F64"),
    "weights in I8": (typed(HEAD, "I8"), HEAD, "I8"),
    "weights in F8_E4M3": (typed(HEAD, "F8_E4M3"), HEAD, "F8_E4M3"),
    "FP8 scales": (extra(tc.LAYER + "self_attn.q_proj.weight_scale_inv"), "weight_scale_inv", "FP8"),
    "GPTQ": (extra(tc.LAYER + "self_attn.q_proj.qweight", "I32"), "qweight", "GPTQ"),
    "bitsandbytes": (extra(tc.LAYER + "self_attn.q_proj.SCB"), "SCB", "bitsandbytes"),
    "compressed-tensors": (extra(tc.LAYER + "self_attn.q_proj.weight_packed", "I32"), "weight_packed", "compressed"),
    "MXFP4": (extra(tc.LAYER + "mlp.experts.gate_up_proj_blocks", "U8"), "gate_up_proj_blocks", "MXFP4"),
}


@pytest.mark.parametrize("rule", BAD_TENSORS)
def test_a_bad_set_of_tensors_is_refused(tmp_path: Path, rule: str) -> None:
    change, where, said = BAD_TENSORS[rule]
    tiny = tc.mixtral()
    change(tiny)
    check(tiny.write(tmp_path), where, said)


@pytest.mark.parametrize(("dtype", "nan"), [("F16", 0x7C01), ("BF16", 0x7F81), ("BF16", 0x5880)])
def test_bad_numbers_are_found_in_half_precision_too(tmp_path: Path, dtype: str, nan: int) -> None:
    tiny = tc.mixtral()
    values = np.zeros(tc.H, "<u2")
    values[5] = nan
    tiny.tensors["model.norm.weight"] = tc.Stored(dtype, (tc.H,), values.tobytes())
    check(tiny.write(tmp_path), "model.norm.weight", "[5]")


def test_a_weight_just_below_the_limit_is_good(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    value(HEAD, 0, BIG - 1)(tiny)
    assert float(load(tiny.write(tmp_path)).tensors["head.weight"].read()[0, 0]) == -(2.0**50 - 2.0**26)


def test_a_bad_number_in_a_stacked_expert_is_named_by_its_expert(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    for name in [n for n in tiny.tensors if ".experts." in n]:
        del tiny.tensors[name]
    half_stacked(tiny)
    value(tc.MOE + "experts.gate_up_proj", 64 + 32 + 9, NAN)(tiny)
    check(tiny.write(tmp_path), "experts.gate_up_proj", "'layers.0.experts.1.up.weight'[1, 1]")


# --- the folder ------------------------------------------------------------------------------------------------------------


def folder_missing(path: Path) -> Path:
    return path / "nothing"


def folder_empty(path: Path) -> Path:
    return path


def other_file(path: Path) -> Path:
    (path / "notes.txt").write_text("x")
    return path / "notes.txt"


def no_config(path: Path) -> Path:
    (tc.mixtral().write(path) / "config.json").unlink()
    return path


def no_weights(path: Path) -> Path:
    (tc.mixtral().write(path) / "model.safetensors").unlink()
    return path


def pickles_only(path: Path) -> Path:
    (no_weights(path) / "pytorch_model.bin").write_bytes(b"\x80\x02")
    return path


def pickle_named(path: Path) -> Path:
    return pickles_only(path) / "pytorch_model.bin"


def two_files(path: Path) -> Path:
    tc.mixtral().write(path)
    (path / "model.safetensors").rename(path / "a.safetensors")
    (path / "b.safetensors").write_bytes(b"")
    return path


def index_and_single(path: Path) -> Path:
    tc.mixtral().write(path)
    tc.write_index(path, {"weight_map": {}})
    return path


def config_is_folder(path: Path) -> Path:
    (no_config(path) / "config.json").mkdir()
    return path


def config_is_fifo(path: Path) -> Path:
    os.mkfifo(no_config(path) / "config.json")
    return path


def config_too_large(path: Path) -> Path:
    with (tc.mixtral().write(path) / "config.json").open("r+b") as file:
        file.truncate(1 << 40)
    return path


def link(name: str) -> Callable[[Path], Path]:
    def build(path: Path) -> Path:
        folder = tc.mixtral().write(path / "inside")
        (folder / name).unlink(missing_ok=True)
        (path / "outside").write_text("{}")
        (folder / name).symlink_to(path / "outside")
        return folder

    return build


def link_to_itself(path: Path) -> Path:
    (no_config(path) / "config.json").symlink_to("config.json")
    return path


def nul_in_path(path: Path) -> Path:
    return path / "a\0b"


def long_name(path: Path) -> Path:
    return path / ("a" * 5000)


BAD_FOLDERS: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "nothing there": (folder_missing, "nothing", "no such file"),
    "an empty folder": (folder_empty, "", "an empty folder"),
    "a file of another kind": (other_file, "notes.txt", "another kind"),
    "no config.json": (no_config, "config.json", "a file, got no such file"),
    "no weights": (no_weights, "", "a .safetensors file"),
    "pickles only": (pickles_only, "pytorch_model.bin", "pickle"),
    "a pickle": (pickle_named, "pytorch_model.bin", "pickle"),
    "two weight files and no index": (two_files, "", "'a.safetensors', 'b.safetensors'"),
    "an index and a single file": (index_and_single, "", "one of"),
    "config.json a folder": (config_is_folder, "config.json", "a regular file"),
    "config.json a FIFO": (config_is_fifo, "config.json", "a regular file"),
    "config.json too large": (config_too_large, "config.json", "at most 16777216 bytes"),
    "config.json a link outside": (link("config.json"), "config.json", "leads out"),
    "weights a link outside": (link("model.safetensors"), "model.safetensors", "leads out"),
    "tokenizer.json a link outside": (link("tokenizer.json"), "tokenizer.json", "leads out"),
    "generation_config.json a link outside": (link("generation_config.json"), "generation_config.json", "leads out"),
    "a link to itself": (link_to_itself, "config.json", "symbolic links"),
    "a NUL in the path": (nul_in_path, "", "null"),
    "an escape sequence in a file name": (lambda p: p / "\x1b[2J", "\\x1b[2J", "no such file"),
    "a file name that is not UTF-8": (lambda p: p / "\udcff", "\\udcff", "no such file"),
    "a name too long": (long_name, "", "too long"),
}


@pytest.mark.parametrize("rule", BAD_FOLDERS)
def test_a_bad_folder_is_refused(tmp_path: Path, rule: str) -> None:
    build, where, said = BAD_FOLDERS[rule]
    check(build(tmp_path), where, said)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_permission_denied_is_an_error_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    tiny = tc.mixtral()
    tiny.files["tokenizer.json"] = b"{}"
    folder = tiny.write(tmp_path)
    real_open = Path.open

    def refuse(self: Path, *args: Any, **options: Any) -> Any:
        # Tests may run as root, whom no mode keeps out.
        if self.name == file:
            raise PermissionError(13, "Permission denied", str(self))
        return real_open(self, *args, **options)

    monkeypatch.setattr(Path, "open", refuse)
    check(folder, file, "permission denied")


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    check(tc.mixtral().write(tmp_path), str(tmp_path), "permission denied")


def test_an_unknown_family_is_a_usage_error(tmp_path: Path) -> None:
    error = refusal(tc.mixtral().write(tmp_path), Reading("gpt2"))
    assert isinstance(error, UsageError)
    assert "mixtral" in error.expected


# --- shards ------------------------------------------------------------------------------------------------------------------

Index = dict[str, Any]
SHARD_1, SHARD_2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def mapped(file: object) -> Callable[[Path, Index], object]:
    return lambda folder, index: index["weight_map"].update({FIRST: file})


def rewritten(new: object) -> Callable[[Path, Index], object]:
    def change(folder: Path, index: Index) -> None:
        index.clear()
        index.update(new)  # type: ignore[call-overload]  # object by design

    return change


def stored_twice(folder: Path, index: Index) -> None:
    tiny = tc.mixtral()
    second = {n: t for n, t in tiny.tensors.items() if index["weight_map"][n] == SHARD_2}
    (folder / SHARD_2).write_bytes(tc.safetensors_bytes({**second, FIRST: tiny.tensors[FIRST]}))


def shard_link(folder: Path, index: Index) -> None:
    (folder / SHARD_2).rename(folder.parent / "outside.safetensors")
    (folder / SHARD_2).symlink_to(folder.parent / "outside.safetensors")


BAD_INDEXES: dict[str, tuple[Callable[[Path, Index], object], str, str]] = {
    "no weight_map": (rewritten({"metadata": {}}), "weight_map", "an object"),
    "weight_map a list": (rewritten({"weight_map": []}), "weight_map", "a list"),
    "an empty weight_map": (rewritten({"weight_map": {}}), "index.json", FIRST),
    "a file name that is not a string": (mapped(1), FIRST, "plain name"),
    "a file name that is a path": (mapped("../x.safetensors"), FIRST, "plain name"),
    "an absolute file name": (mapped("/x.safetensors"), FIRST, "plain name"),
    "a file name with a backslash": (mapped("..\\x.safetensors"), FIRST, "plain name"),
    "a file name with a NUL": (mapped("a\0.safetensors"), FIRST, "plain name"),
    "a pickle": (mapped("pytorch_model.bin"), FIRST, "plain name"),
    "a file that is missing": (mapped("model-00003-of-00002.safetensors"), "00003", "no such file"),
    "a tensor mapped to the wrong file": (mapped(SHARD_2), FIRST, f"'{SHARD_2}'"),
    "a tensor in no file": (lambda f, i: i["weight_map"].update(ghost=SHARD_1), SHARD_1, "'ghost'"),
    "a tensor in no map": (lambda f, i: i["weight_map"].pop(FIRST), FIRST, "in no file"),
    "a tensor in two files": (stored_twice, FIRST, f"'{SHARD_1}'"),
    "a shard that is a link outside": (shard_link, SHARD_2, "leads out"),
}


@pytest.mark.parametrize("rule", BAD_INDEXES)
def test_a_bad_index_is_refused(tmp_path: Path, rule: str) -> None:
    change, where, said = BAD_INDEXES[rule]
    folder = tmp_path / "inside"
    index = tc.write_shards(tc.mixtral(), folder, 2)
    assert "embed.weight" in load(folder).tensors
    change(folder, index)
    tc.write_index(folder, index)
    check(folder, where, said)
