# SPDX-License-Identifier: Apache-2.0
"""GGUF files: every array where it belongs, every spelling of it, and the facts that a file leaves open.

The files of the oracles are written by llama.cpp's own package, with its names for the framework's tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from gguf_files import EXPERTS, HEADS, KV, LAYERS, MIXTRAL, WIDTH, File, H, file_of, mixtral, mixtral_arrays

from colibri.axes import Attention
from colibri.errors import CheckpointError, ColibriError, UsageError
from colibri.importers import load
from colibri.model import Model, Reading
from colibri.quantise import Policy, store
from colibri_sim.golden import GoldenModel

ORACLES = Path(__file__).parents[1] / "oracles" / "data"
TOLERANCE = 2e-5  # NUMERICS section 11


def loaded(folder: Path, file: File, *stated: tuple[str, str]) -> Model:
    path = folder / "model.gguf"
    path.write_bytes(file.raw())
    return load(path, Reading(None, stated))


def logits(model: Model, ids: list[int]) -> np.ndarray:
    policy = Policy.parse("f32").resolve(model.config)
    golden = GoldenModel(model.config, cache(lambda name: store(model.tensors[name], policy.format_of(name))))
    return golden.forward(ids).logits


def values(model: Model) -> dict[str, np.ndarray]:
    return {name: tensor.read() for name, tensor in model.tensors.items()}


CANONICAL = {"attn_norm": "attn_norm", "attn_q": "attn.q", "attn_k": "attn.k", "attn_v": "attn.v"}
CANONICAL |= {"attn_output": "attn.o", "ffn_norm": "ffn_norm", "ffn_gate_inp": "router"}


def test_every_array_is_where_it_belongs(tmp_path: Path) -> None:
    model, arrays = loaded(tmp_path, mixtral()), mixtral_arrays()
    c, mixer = model.config, model.config.layers[0].mixer
    assert (c.family, len(c.layers), c.hidden_size, c.max_seq, c.tied_head) == ("mixtral", LAYERS, H, 32, False)
    assert isinstance(mixer, Attention)
    assert mixer.rope is not None
    assert (mixer.n_heads, mixer.n_kv_heads, mixer.rope.pairing) == (HEADS, KV, "adjacent")
    expected = {"embed": "token_embd", "final_norm": "output_norm", "head": "output"}
    found = values(model)
    for target, name in expected.items():
        assert np.array_equal(found[f"{target}.weight"], arrays[f"{name}.weight"])
    for n in range(LAYERS):
        for name, target in CANONICAL.items():
            assert np.array_equal(found[f"layers.{n}.{target}.weight"], arrays[f"blk.{n}.{name}.weight"])
        for j in range(EXPERTS):
            for part in ("gate", "up", "down"):
                stacked = arrays[f"blk.{n}.ffn_{part}_exps.weight"]
                assert np.array_equal(found[f"layers.{n}.experts.{j}.{part}.weight"], stacked[j])
    assert len(found) == 3 + LAYERS * (len(CANONICAL) + 3 * EXPERTS)


def apart(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """As before 2024: one tensor an expert."""
    out: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if "_exps" in name:
            out |= {name.replace("_exps", f".{j}"): array[j] for j in range(EXPERTS)}
        else:
            out[name] = array
    return out


def gate_and_up(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    out = {n: a for n, a in arrays.items() if "gate_exps" not in n and "up_exps" not in n}
    for n in range(LAYERS):
        both = [arrays[f"blk.{n}.ffn_{part}_exps.weight"] for part in ("gate", "up")]
        out[f"blk.{n}.ffn_gate_up_exps.weight"] = np.concatenate(both, axis=1)
    return out


def fused_qkv(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    out = {n: a for n, a in arrays.items() if not any(f"attn_{x}." in n for x in "qkv")}
    for n in range(LAYERS):
        out[f"blk.{n}.attn_qkv.weight"] = np.concatenate([arrays[f"blk.{n}.attn_{x}.weight"] for x in "qkv"])
    return out


@pytest.mark.parametrize("layout", [apart, gate_and_up, fused_qkv])
def test_other_layouts_hold_the_same_values(layout: Callable[..., dict[str, np.ndarray]], tmp_path: Path) -> None:
    expected = values(loaded(tmp_path, mixtral()))
    found = values(loaded(tmp_path, file_of(MIXTRAL, layout(mixtral_arrays()))))
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_version_2_and_another_alignment(tmp_path: Path) -> None:
    file = mixtral().with_pair("general.alignment", 256)
    file.alignment, file.version = 256, 2
    expected = values(loaded(tmp_path, mixtral()))
    assert all(np.array_equal(array, expected[name]) for name, array in values(loaded(tmp_path, file)).items())


def test_both_spellings_of_the_number_chosen(tmp_path: Path) -> None:
    renamed = mixtral().without("llama.expert_used_count").with_pair("llama.expert_used_per_token", 3)
    router = loaded(tmp_path, renamed).config.layers[0].ffn.router
    assert router is not None
    assert router.top_k == 3
    with pytest.raises(CheckpointError, match="expert_used_per_token: expected the same as expert_used_count"):
        loaded(tmp_path, mixtral().with_pair("llama.expert_used_per_token", 3))


def test_a_fact_that_is_nowhere_must_be_stated(tmp_path: Path) -> None:
    file = mixtral().without("llama.expert_used_count").without("llama.expert_count")
    with pytest.raises(CheckpointError) as error:
        loaded(tmp_path, file)
    assert "add --set experts.count=N" in error.value.hint
    model = loaded(tmp_path, file, ("experts.count", "4"), ("experts.per_token", "2"))
    assert model.config == loaded(tmp_path, mixtral()).config
    assert model.settings["experts.count"] == 4
    with pytest.raises(UsageError, match=r"experts.count: expected a whole number"):
        loaded(tmp_path, file, ("experts.count", "many"), ("experts.per_token", "2"))


def test_a_window_is_stated_against_the_file(tmp_path: Path) -> None:
    model = loaded(tmp_path, mixtral(), ("attention.sliding_window", "4"))
    assert [layer.mixer.window for layer in model.config.layers if isinstance(layer.mixer, Attention)] == [4, 4]
    with pytest.raises(UsageError, match="another value than the checkpoint's"):
        loaded(tmp_path, mixtral(), ("attention.sliding_window", "none"))


def test_rope_freqs_divide_the_table(tmp_path: Path) -> None:
    factors = np.linspace(1, 8, H // HEADS // 2, dtype=np.float32)
    plain = loaded(tmp_path, mixtral()).config.layers[0].mixer
    scaled = (
        loaded(tmp_path, file_of(MIXTRAL, {**mixtral_arrays(), "rope_freqs.weight": factors})).config.layers[0].mixer
    )
    assert isinstance(plain, Attention)
    assert isinstance(scaled, Attention)
    assert plain.rope is not None
    assert scaled.rope is not None
    expected = np.asarray(plain.rope.inv_freq, np.float32) / factors
    assert np.array_equal(np.asarray(scaled.rope.inv_freq, np.float32), expected)


def test_a_model_in_three_files(tmp_path: Path) -> None:
    arrays = list(mixtral_arrays().items())
    parts = [dict(arrays[:5]), dict(arrays[5:9]), dict(arrays[9:])]
    for n, part in enumerate(parts):
        split = {"split.no": n, "split.count": 3}
        metadata = {**MIXTRAL, **split, "split.tensors.count": len(arrays)} if n == 0 else split
        (tmp_path / f"m-{n + 1:05d}-of-00003.gguf").write_bytes(file_of(metadata, part).raw())
    first = tmp_path / "m-00001-of-00003.gguf"
    expected = values(loaded(tmp_path, mixtral()))
    assert all(np.array_equal(array, expected[name]) for name, array in values(load(first)).items())
    with pytest.raises(CheckpointError, match="the first of 3 parts"):
        load(tmp_path / "m-00002-of-00003.gguf")
    second = tmp_path / "m-00002-of-00003.gguf"
    second.write_bytes(file_of({"split.no": 2, "split.count": 3}, parts[1]).raw())
    with pytest.raises(CheckpointError, match=r"split.no: expected part 2 of 3"):
        load(first)
    second.write_bytes(file_of({"split.no": 1, "split.count": 3}, parts[0]).raw())
    with pytest.raises(CheckpointError, match="each tensor in one part"):
        load(first)
    second.write_bytes(file_of({"split.no": 1, "split.count": 3}, dict(list(parts[1].items())[1:])).raw())
    with pytest.raises(CheckpointError, match=r"split.tensors.count"):
        load(first)
    second.unlink()
    with pytest.raises(CheckpointError, match=r"00002-of-00003.gguf: expected a readable file"):
        load(first)
    second.symlink_to("/dev/null")
    with pytest.raises(CheckpointError, match="leads out of it"):
        load(first)


def test_an_unknown_architecture_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"general.architecture: expected one of llama, .* got the string 'rwkv7'"
    ):
        loaded(tmp_path, mixtral().with_pair("general.architecture", "rwkv7"))


def test_a_key_whose_effect_is_unknown_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"llama.attention.causal: expected only keys whose effect is known"):
        loaded(tmp_path, mixtral().with_pair("llama.attention.causal", False))


def test_a_family_cannot_be_named(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(mixtral().raw())
    with pytest.raises(UsageError, match="--family"):
        load(path, Reading("mixtral", ()))


def test_the_identity_covers_keys_and_bytes_and_not_the_file(tmp_path: Path) -> None:
    plain = loaded(tmp_path, mixtral()).source_sha256
    assert loaded(tmp_path, mixtral().with_pair("general.name", "another")).source_sha256 == plain
    assert loaded(tmp_path, mixtral().with_pair("llama.context_length", 31)).source_sha256 != plain
    assert loaded(tmp_path, file_of(MIXTRAL, mixtral_arrays(6))).source_sha256 != plain


def test_widths_come_from_the_tensors_where_no_key_says_them(tmp_path: Path) -> None:
    model = loaded(tmp_path, mixtral().with_pair("llama.feed_forward_length", 0))
    assert model.config.layers[0].ffn.width == WIDTH


def test_errors_are_of_the_users_kind_only(tmp_path: Path) -> None:
    """Every prefix of a file is refused with one of our errors."""
    raw = mixtral().raw()
    for n in (*range(0, 3000, 97), len(raw) - 1):
        path = tmp_path / "cut.gguf"
        path.write_bytes(raw[:n])
        with pytest.raises(ColibriError):
            load(path)


def test_a_bias_shows_in_the_tensors(tmp_path: Path) -> None:
    extra = {
        f"blk.{n}.attn_{x}.bias": np.ones(r, np.float32)
        for n in range(LAYERS)
        for x, r in (("q", H), ("k", H // 2), ("v", H // 2))
    }
    mixer = loaded(tmp_path, file_of(MIXTRAL, {**mixtral_arrays(), **extra})).config.layers[1].mixer
    assert isinstance(mixer, Attention)
    assert replace(mixer, qkv_bias=False) != mixer
    assert not mixer.o_bias
