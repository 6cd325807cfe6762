# SPDX-License-Identifier: Apache-2.0
"""Good checkpoints: what comes out is what the files hold."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import tiny_checkpoint as tc
from safetensors import safe_open

from colibri.importers import load
from colibri.importers.bind import Part, _tensor
from colibri.importers.safetensors import read_header
from colibri.importers.stored import find
from colibri.model import Generation, Model, Reading

ROOT = Path(__file__).parents[2]
ORACLES = ROOT / "tests" / "oracles" / "data"
STORIES = ROOT / "weights" / "stories-moe-3m"
# Those whose names are Llama's or Mixtral's; the others are in test_importer_families.
NAMES = sorted(
    p.name for p in ORACLES.iterdir() if p.name.startswith(("mixtral", "llama_", "mistral")) and "moe" not in p.name
)


def bits(model: Model) -> dict[str, tuple[tuple[int, ...], bytes]]:
    return {t.name: (t.shape, t.read().tobytes()) for t in model}


def reference(folder: Path) -> dict[str, np.ndarray]:
    """All tensors of a folder by another reader, in float32."""
    values = {}
    for path in sorted(folder.glob("*.safetensors")):
        raw, start = path.read_bytes(), 8 + int.from_bytes(path.read_bytes()[:8], "little")
        header = json.loads(raw[8:start])
        with safe_open(path, "np") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                entry = header[name]
                if entry["dtype"] == "BF16":  # which NumPy, and so that reader, does not have
                    begin, end = entry["data_offsets"]
                    upper = np.frombuffer(raw[start + begin : start + end], "<u2").astype("<u4")
                    values[name] = (upper << 16).view("<f4").reshape(entry["shape"])
                else:
                    values[name] = file.get_tensor(name).astype(np.float32)
    return values


def canonical_name(name: str) -> str:
    for old, new in (
        ("model.embed_tokens", "embed"),
        ("model.norm", "final_norm"),
        ("lm_head", "head"),
        ("model.layers", "layers"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn", "attn"),
        ("block_sparse_moe.gate", "router"),
        ("block_sparse_moe.", ""),
        ("_proj", ""),
        (".mlp.", ".ffn."),
        (".w1.", ".gate."),
        (".w2.", ".down."),
        (".w3.", ".up."),
    ):
        name = name.replace(old, new)
    return name


@pytest.mark.parametrize("name", [n for n in NAMES if n != "mixtral_fused"])
def test_every_value_is_what_another_reader_reads(name: str) -> None:
    model = load(ORACLES / name)
    expected = {canonical_name(n): v for n, v in reference(ORACLES / name).items()}
    if model.config.tied_head:
        expected.pop("head.weight", None)
    assert set(model.tensors) == set(expected)
    for tensor in model:
        values = tensor.read()
        assert values.dtype == np.float32
        assert values.shape == tensor.shape == expected[tensor.name].shape
        assert values.tobytes() == expected[tensor.name].tobytes(), tensor.name


@pytest.mark.parametrize("name", NAMES)
def test_tensors_are_those_of_the_config_in_its_order(name: str) -> None:
    model = load(ORACLES / name)
    assert [(t.name, t.shape) for t in model] == list(model.config.tensor_shapes().items())
    assert list(model.tensors) == [t.name for t in model]


def test_stacked_experts_give_the_bits_of_separate_ones() -> None:
    assert bits(load(ORACLES / "mixtral_fused")) == bits(load(ORACLES / "mixtral"))


def test_shards_give_the_bits_and_the_hash_of_one_file() -> None:
    sharded, single = load(ORACLES / "mixtral_sharded"), load(ORACLES / "mixtral")
    assert bits(sharded) == bits(single)
    assert sharded.source_sha256 == single.source_sha256


def test_both_spellings_of_a_config_mean_the_same() -> None:
    old, new = load(ORACLES / "llama_v4config"), load(ORACLES / "llama")
    assert old.config == new.config
    assert bits(old) == bits(new)


def test_a_stored_copy_of_a_tied_head_changes_nothing() -> None:
    both, one = load(ORACLES / "mixtral_tied_both"), load(ORACLES / "mixtral_tied")
    assert both.config == one.config
    assert bits(both) == bits(one)


@pytest.mark.parametrize(("name", "dtype"), [("mixtral", "f32"), ("mixtral_f16", "f16"), ("mixtral_bf16", "bf16")])
def test_tensors_name_the_dtype_of_the_file(name: str, dtype: str) -> None:
    assert {t.dtype for t in load(ORACLES / name)} == {dtype}


def test_axes_of_an_odd_model() -> None:
    config = load(ORACLES / "mixtral_odd").config
    assert (config.family, config.vocab_size, config.hidden_size, config.max_seq) == ("mixtral", 131, 72, 128)
    assert (config.tied_head, config.bos_id, config.eos_ids) == (False, 1, (2,))
    assert config.final_norm.eps == float(np.float32(1e-5))
    (layer,) = set(config.layers)
    assert len(config.layers) == 2
    a = layer.mixer
    assert (a.n_heads, a.n_kv_heads, a.head_dim, a.window) == (5, 1, 12, 9)
    assert a.scale == float(np.float32(12**-0.5))
    assert (a.rope.pairing, a.rope.rotary_dim) == ("half", 12)
    assert layer.ffn.width == 44
    assert layer.ffn.router is not None
    assert (layer.ffn.router.n_experts, layer.ffn.router.top_k) == (5, 3)


def test_a_dense_model_has_no_router() -> None:
    config = load(ORACLES / "mistral_swa").config
    assert config.layers[0].ffn.router is None
    assert config.layers[0].mixer.window == 4


def test_the_demo_checkpoint_loads() -> None:
    model = load(STORIES)
    assert sum(t.read().size for t in model) == 3413120
    assert model.generation == Generation(temperature=float("0.7"), top_k=0, top_p=float("0.9"))
    assert model.tokenizer_json == (STORIES / "tokenizer.json").read_bytes()
    assert model.config.tied_head
    assert len(model.config.layers) == 4


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_a_file_of_a_folder_means_the_folder(file: str) -> None:
    assert load(ORACLES / "mixtral" / file).source_sha256 == load(ORACLES / "mixtral").source_sha256


@pytest.mark.parametrize("file", ["model.safetensors.index.json", "model-00002-of-00004.safetensors"])
def test_an_index_or_one_shard_means_all_of_them(file: str) -> None:
    assert load(ORACLES / "mixtral_sharded" / file).source_sha256 == load(ORACLES / "mixtral").source_sha256


def test_the_hash_follows_content_only(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    first = load(tiny.write(tmp_path / "a")).source_sha256
    tiny.tensors = dict(reversed(tiny.tensors.items()))
    tiny.config = dict(reversed(tiny.config.items()))
    tiny.files["generation_config.json"] = b'{"top_k": 3}'
    assert load(tiny.write(tmp_path / "b")).source_sha256 == first
    data = bytearray(tiny.tensors["lm_head.weight"].data)
    data[0] ^= 1
    tiny.tensors["lm_head.weight"].data = bytes(data)
    assert load(tiny.write(tmp_path / "c")).source_sha256 != first
    data[0] ^= 1
    tiny.tensors["lm_head.weight"].data = bytes(data)
    tiny.config["use_cache"] = True
    assert load(tiny.write(tmp_path / "d")).source_sha256 != first


def test_the_hash_is_the_documented_stream() -> None:
    path = ORACLES / "mixtral_bf16" / "model.safetensors"
    config = json.loads(path.with_name("config.json").read_text())
    raw, start = path.read_bytes(), 8 + int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(raw[8:start])
    del header["__metadata__"]

    def u64(*numbers: int) -> bytes:
        return b"".join(n.to_bytes(8, "little") for n in numbers)

    def string(text: str) -> bytes:
        return u64(len(text)) + text.encode()

    stream = string("colibri-source-1") + string(json.dumps(config, sort_keys=True, separators=(",", ":")))
    stream += u64(len(header))
    for name, entry in sorted(header.items()):
        begin, end = entry["data_offsets"]
        stream += string(name) + string(entry["dtype"]) + u64(len(entry["shape"]), *entry["shape"], end - begin)
        stream += raw[start + begin : start + end]
    assert load(path.parent).source_sha256 == hashlib.sha256(stream).hexdigest()


def test_each_read_is_a_new_array(tmp_path: Path) -> None:
    tensor = load(tc.mixtral().write(tmp_path)).tensors["embed.weight"]
    tensor.read()[:] = 0
    assert tensor.read().any()


def test_keys_that_are_absent_mean_the_defaults_of_the_class(tmp_path: Path) -> None:
    tiny = tc.mistral()
    for key in (
        "sliding_window",
        "rms_norm_eps",
        "rope_parameters",
        "hidden_act",
        "bos_token_id",
        "tie_word_embeddings",
    ):
        del tiny.config[key]
    tiny.config["eos_token_id"] = None
    config = load(tiny.write(tmp_path)).config
    assert config.layers[0].mixer.window == 4096
    assert config.final_norm.eps == float(np.float32(1e-6))
    assert config.layers[0].mixer.rope.inv_freq == (1.0, float(np.float32(0.01)))
    # A vocabulary of six has the ids 1 and 2; null means none, absent the class's.
    assert (config.bos_id, config.eos_ids, config.tied_head) == (1, (), False)


def test_default_ids_that_the_vocabulary_is_too_small_for_mean_none(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    del tiny.config["bos_token_id"], tiny.config["eos_token_id"]
    tiny.config["vocab_size"] = 1
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        tiny.tensors[name] = tc.f32(np.ones((1, tc.H)))
    config = load(tiny.write(tmp_path)).config
    assert (config.bos_id, config.eos_ids) == (None, ())


def test_the_default_theta_of_mixtral_is_a_million(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    del tiny.config["rope_parameters"]
    assert load(tiny.write(tmp_path)).config.layers[0].mixer.rope.inv_freq == (1.0, float(np.float32(0.001)))


def test_names_of_the_module_in_memory_are_read_too(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    expected = bits(load(tiny.write(tmp_path / "a")))
    for name in list(tiny.tensors):
        for old, new in (("w1", "gate_proj"), ("w3", "up_proj"), ("w2", "down_proj")):
            if f".{old}." in name:
                tiny.rename(name, name.replace("block_sparse_moe", "mlp").replace(old, new))
    tiny.rename(tc.MOE + "gate.weight", tc.LAYER + "mlp.gate.weight")
    assert bits(load(tiny.write(tmp_path / "b"))) == expected


def test_buffers_of_older_versions_are_not_weights(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    tiny.tensors[tc.LAYER + "self_attn.rotary_emb.inv_freq"] = tc.f32(np.ones(2))
    assert "embed.weight" in load(tiny.write(tmp_path)).tensors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", Generation()),
        ('{"temperature": 0.5, "top_k": 40, "top_p": 0.25}', Generation(0.5, 40, 0.25)),
        ('{"temperature": 0.5, "top_k": 40, "top_p": 0.0}', Generation(0.0, 40, 1.0)),
        ('{"temperature": 0.5, "top_p": 1e-60}', Generation(0.0, 0, 1.0)),
        ('{"do_sample": true, "temperature": 1}', Generation()),
        ('{"do_sample": false, "temperature": 0.5}', Generation(temperature=0.0)),
        ('{"top_k": null, "top_p": null, "temperature": null, "do_sample": null}', Generation()),
    ],
)
def test_sampling_defaults_are_what_the_file_says(tmp_path: Path, text: str, expected: Generation) -> None:
    tiny = tc.mixtral()
    tiny.files["generation_config.json"] = text.encode()
    assert load(tiny.write(tmp_path)).generation == expected


def test_ids_of_the_generation_config_win(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    tiny.files["generation_config.json"] = b'{"bos_token_id": 0, "eos_token_id": [4, 3, 4]}'
    config = load(tiny.write(tmp_path)).config
    assert (config.bos_id, config.eos_ids) == (0, (4, 3))


def test_a_family_can_be_named(tmp_path: Path) -> None:
    tiny = tc.llama()
    tiny.config |= {"model_type": "other", "architectures": ["OtherForCausalLM"]}
    assert load(tiny.write(tmp_path), Reading("llama")).config.family == "llama"


def test_a_family_is_known_by_its_architecture_alone(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    del tiny.config["model_type"]
    assert load(tiny.write(tmp_path)).config.family == "mixtral"


def test_a_config_need_not_name_its_architecture(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    del tiny.config["architectures"]
    assert load(tiny.write(tmp_path)).config.family == "mixtral"


@pytest.mark.parametrize("config", [{}, {"num_key_value_heads": None}])
def test_a_llama_without_kv_heads_has_as_many_as_heads(tmp_path: Path, config: dict[str, None]) -> None:
    tiny = tc.llama()
    del tiny.config["num_key_value_heads"]
    tiny.config |= config
    for name in ("k", "v"):
        tiny.tensors[f"{tc.LAYER}self_attn.{name}_proj.weight"] = tc.f32(np.ones((tc.HEADS * tc.HEAD_DIM, tc.H)))
    assert load(tiny.write(tmp_path)).config.layers[0].mixer.n_kv_heads == tc.HEADS


@pytest.mark.parametrize("both", [False, True])
def test_the_number_of_experts_has_two_names(tmp_path: Path, both: bool) -> None:
    tiny = tc.mixtral()
    tiny.config["num_experts"] = tc.E
    if not both:
        del tiny.config["num_local_experts"]
    router = load(tiny.write(tmp_path)).config.layers[0].ffn.router
    assert router is not None
    assert router.n_experts == tc.E


def test_a_list_of_layer_types_that_are_all_alike_is_good(tmp_path: Path) -> None:
    tiny = tc.mistral()
    tiny.config["layer_types"] = ["sliding_attention"]
    assert load(tiny.write(tmp_path)).config.layers[0].mixer.window == 4


def test_a_snapshot_of_the_hub_cache_is_links_into_its_blobs(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots" / "0123"
    tc.mixtral().write(folder)
    (tmp_path / "blobs").mkdir()
    for file in list(folder.iterdir()):
        blob = file.rename(tmp_path / "blobs" / f"sha-{file.name}")
        file.symlink_to(Path("../../blobs") / blob.name)
    assert "embed.weight" in load(folder).tensors


def test_parts_may_be_transposed_and_interleaved(tmp_path: Path) -> None:
    # As later families store them: [E, H, 2 width] with gate in the even columns.
    values = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    path = tmp_path / "x.safetensors"
    path.write_bytes(tc.safetensors_bytes({"experts": tc.f32(values)}))
    part = Part("up", "experts", (2, 3, 4), (1, slice(None), slice(1, None, 2)), transposed=True)
    tensor = _tensor(part, find("experts", read_header(path), "", (2, 3, 4)))
    assert tensor.shape == (2, 3)
    assert tensor.read().tolist() == values[1, :, 1::2].T.tolist()


def test_subnormals_and_signed_zeros_are_kept(tmp_path: Path) -> None:
    for dtype, size in (("F16", "<u2"), ("BF16", "<u2"), ("F32", "<u4")):
        tiny = tc.mixtral()
        raw = np.array([1, 0, 1 << (np.dtype(size).itemsize * 8 - 1), *range(tc.H - 3)], dtype=size)
        tiny.tensors["model.norm.weight"] = tc.Stored(dtype, (tc.H,), raw.tobytes())
        values = load(tiny.write(tmp_path / dtype)).tensors["final_norm.weight"].read()
        smallest = {"F16": 2.0**-24, "BF16": 2.0**-133, "F32": 2.0**-149}[dtype]
        assert float(values[0]) == smallest
        assert values.view(np.uint32)[2] == 0x80000000
