# SPDX-License-Identifier: Apache-2.0
"""Each check of the GGUF parser: a file that is wrong in that one place is refused, and the message names the place."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_files import (
    ARRAY,
    BOOL,
    F32,
    I32,
    MIXTRAL,
    STRING,
    U32,
    U64,
    File,
    Tensor,
    file_of,
    mixtral,
    mixtral_arrays,
    pair,
    tensor,
    text,
)

from colibri.errors import CheckpointError
from colibri.importers import load
from colibri.importers.gguf.limits import MAX_ENTRIES


def refused(folder: Path, raw: bytes) -> str:
    """The message of a file's refusal; more than a little memory for it is a defect of its own."""
    path = folder / "model.gguf"
    path.write_bytes(raw)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError) as error:
            load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20, "a length was believed"
    return str(error.value)


def with_raw_pair(key: str | bytes, kind: int, value: bytes) -> bytes:
    file = mixtral()
    file.pairs.append((key, kind, value))  # type: ignore[arg-type]  # keys that are no text
    return file.raw()


def changed(index: int, **fields: Any) -> bytes:
    """A file with one tensor's fields otherwise."""
    file = mixtral()
    file.tensors[index] = replace(file.tensors[index], **fields)
    return file.raw()


def fields(**values: Any) -> bytes:
    return replace(mixtral(), **values).raw()


def patched(at: int, number: int) -> bytes:
    """A file with eight bytes otherwise."""
    raw = mixtral().raw()
    return raw[:at] + struct.pack("<Q", number) + raw[at + 8 :]


def big_endian() -> bytes:
    raw = bytearray(mixtral().raw())
    raw[4:8] = struct.pack(">I", 3)
    return bytes(raw)


HUGE = 2**63 - 1
DIMS = mixtral().tensors[0].dims
CONTAINER: dict[str, tuple[Callable[[], bytes], str]] = {
    "no magic": (lambda: fields(magic=b"GGML"), "'GGUF'"),
    "shorter than a header": (lambda: mixtral().raw()[:23], "header of 24 bytes"),
    "version 1": (lambda: fields(version=1), "version 2 or 3, got version 1"),
    "version 4": (lambda: fields(version=4), "version 2 or 3, got version 4"),
    "version 0": (lambda: fields(version=0), "version 2 or 3, got version 0"),
    "big-endian": (big_endian, "little-endian file, got version 0x3000000"),
    "too many pairs for the file": (lambda: fields(n_pairs=MAX_ENTRIES), "key-value pairs"),
    "too many pairs": (lambda: fields(n_pairs=MAX_ENTRIES + 1, tail=bytes(3 << 20)), "key-value pairs"),
    "more pairs than bytes": (lambda: fields(n_pairs=MAX_ENTRIES)[:4000], "key-value pairs"),
    "2**63 pairs": (lambda: fields(n_pairs=HUGE), "key-value pairs"),
    "too many tensors": (lambda: fields(n_tensors=MAX_ENTRIES + 1, tail=bytes(3 << 20)), "tensors, and as many"),
    "2**64-1 tensors": (lambda: fields(n_tensors=2**64 - 1), "tensors, and as many"),
    "more tensors than there are": (lambda: fields(n_tensors=60), "a name of letters"),
    "a key of 2**63 bytes": (lambda: patched(24, HUGE), "a key of at most 65535 bytes"),
    "a key too long": (lambda: with_raw_pair("k" * 65536, U32, bytes(4)), "a key of at most 65535 bytes"),
    "an empty key": (lambda: with_raw_pair("", U32, bytes(4)), "keys of a-z"),
    "a key of other characters": (lambda: with_raw_pair("a key", U32, bytes(4)), "keys of a-z"),
    "a key in other bytes": (lambda: with_raw_pair(b"\xff\xfe", U32, bytes(4)), "in UTF-8"),
    "a key twice": (lambda: with_raw_pair("llama.block_count", U32, bytes(4)), "each key once"),
    "an unknown type": (lambda: with_raw_pair("x", 13, bytes(4)), "a type from 0 to 12, got 13"),
    "a string of 2**63 bytes": (lambda: with_raw_pair("x", STRING, struct.pack("<Q", HUGE)), "the value of 'x'"),
    "a string past the end": (lambda: with_raw_pair("x", STRING, struct.pack("<Q", 1 << 28)), "bytes left"),
    "a string in other bytes": (lambda: with_raw_pair("x", STRING, text(b"\xc3")), "in UTF-8"),
    "bool 2": (lambda: with_raw_pair("x", BOOL, b"\2"), "0 or 1 for a bool, got 2"),
    "bool 2 in an array": (lambda: with_raw_pair("x", ARRAY, struct.pack("<IQ", BOOL, 2) + b"\0\2"), "0 or 1"),
    "an array of arrays": (lambda: with_raw_pair("x", ARRAY, struct.pack("<IQ", ARRAY, 1)), "an array of arrays"),
    "an array of unknown type": (lambda: with_raw_pair("x", ARRAY, struct.pack("<IQ", 99, 1)), "a type from 0 to 12"),
    "an array past the end": (lambda: with_raw_pair("x", ARRAY, struct.pack("<IQ", U32, 1 << 26)), "the values of 'x'"),
    "an array whose bytes wrap": (lambda: with_raw_pair("x", ARRAY, struct.pack("<IQ", U64, 2**61)), "the values of"),
    "strings past the end": (lambda: with_raw_pair("x", ARRAY, struct.pack("<IQ", STRING, 1 << 40)), "strings, and"),
    "an alignment of 48": (lambda: mixtral().with_pair("general.alignment", 48).raw(), "a power of two from 8"),
    "an alignment of 0": (lambda: mixtral().with_pair("general.alignment", 0).raw(), "a power of two from 8"),
    "an alignment of 4": (lambda: mixtral().with_pair("general.alignment", 4).raw(), "a power of two from 8"),
    "an alignment of 2**17": (lambda: mixtral().with_pair("general.alignment", 2**17).raw(), "a power of two from 8"),
    "an alignment of another type": (
        lambda: mixtral().with_pair("general.alignment", 32, U64).raw(),
        "a value of type UINT32",
    ),
    "an empty name": (lambda: changed(0, name=""), "a name of letters"),
    "a name too long": (lambda: changed(0, name="n" * 64), "a tensor's name of at most 63 bytes"),
    "a name with a slash": (lambda: changed(0, name="../x"), "a name of letters"),
    "a name in other bytes": (lambda: changed(0, name=b"\xff"), "a tensor's name in UTF-8"),
    "a name twice": (lambda: changed(0, name=mixtral().tensors[1].name), "each name once"),
    "no dimension": (lambda: changed(0, dims=()), "1 to 4 dimensions, got 0"),
    "five dimensions": (lambda: changed(0, dims=(1, 1, 1, 1, 1)), "1 to 4 dimensions, got 5"),
    "a dimension of 0": (lambda: changed(0, dims=(64, 0)), "dimensions from 1"),
    "a dimension of 2**31+1": (lambda: changed(0, dims=(64, 2**31 + 1)), "dimensions from 1"),
    "a product that wraps": (lambda: changed(0, dims=(2**31, 2**31, 4)), "it ends at byte"),
    "a type that is not for files": (lambda: changed(0, type=9), "got type number 9"),
    "a removed type": (lambda: changed(0, type=4), "got type number 4"),
    "integers": (lambda: changed(0, type=26), "got type number 26"),
    "rows of half a block": (lambda: changed(0, type=8, dims=(48, 40)), "whole blocks of 32"),
    "an offset that is not a multiple": (lambda: changed(1, offset=10241), "not a multiple"),
    "an overlap": (lambda: changed(1, offset=0), "an overlap"),
    "a gap": (lambda: changed(len(mixtral().tensors) - 1, offset=1 << 20), "a gap"),
    "a product that wraps to what the file has": (lambda: changed(0, dims=(2**31, 2**31, 4, 2**31)), "it ends at byte"),
    "an offset of 2**64-32": (lambda: changed(1, offset=2**64 - 32), "a gap"),
    "data past the end": (lambda: mixtral().raw()[:-32], "data within the file's"),
    "a last tensor that ends late": (lambda: mixtral().raw()[:-1], "data within the file's"),
    "bytes after the last tensor": (lambda: fields(tail=bytes(32)), "fewer than 32 bytes of padding"),
    "padding that is not zero": (lambda: fields(tail=b"\0" * 7 + b"\1"), "padding of zeros"),
}


@pytest.mark.parametrize("name", CONTAINER)
def test_a_container_that_is_wrong_in_one_place_is_refused(name: str, tmp_path: Path) -> None:
    make, expected = CONTAINER[name]
    assert expected in refused(tmp_path, make())


@pytest.mark.parametrize("kind", [STRING, U32])
def test_every_length_is_compared_with_the_file_before_memory_is_taken(kind: int, tmp_path: Path) -> None:
    for n in (1 << 30, 1 << 40, HUGE, 2**64 - 1):
        refused(tmp_path, with_raw_pair("x", ARRAY, struct.pack("<IQ", kind, n)))


def keyed(**values: Any) -> bytes:
    file = mixtral()
    for key, value in values.items():
        file = file.with_pair(f"llama.{key.replace('__', '.')}", value)
    return file.raw()


def lacking(key: str) -> bytes:
    return mixtral().without(f"llama.{key}").raw()


MEANING: dict[str, tuple[Callable[[], bytes], str]] = {
    "no architecture": (
        lambda: mixtral().without("general.architecture").raw(),
        "general.architecture: expected a value",
    ),
    "an architecture that is a number": (
        lambda: mixtral().with_pair("general.architecture", 7).raw(),
        "a value of type STRING",
    ),
    "no block_count": (lambda: lacking("block_count"), "llama.block_count: expected a value, got no such key"),
    "513 blocks": (lambda: keyed(block_count=513), "an integer from 1 to 512"),
    "0 blocks": (lambda: keyed(block_count=0), "an integer from 1 to 512"),
    "only training's blocks": (lambda: keyed(nextn_predict_layers=2), "fewer than all 2 blocks"),
    "a block less": (lambda: keyed(block_count=1), "left over"),
    "a block more": (lambda: keyed(block_count=3), "tensor 'blk.2.attn_norm.weight'"),
    "1025 experts": (lambda: keyed(expert_count=1025), "an integer from 0 to 1024"),
    "an expert more than there are": (lambda: keyed(expert_count=5), "from the configuration"),
    "0 experts chosen": (lambda: keyed(expert_used_count=0), "an integer from 1 to 4"),
    "5 of 4 experts": (lambda: keyed(expert_used_count=5), "an integer from 1 to 4"),
    "counts that differ by layer": (lambda: keyed(expert_used_count=[1, 2]), "one number for all layers"),
    "an empty array": (
        lambda: with_raw_pair("llama.rope.dimension_count", ARRAY, struct.pack("<IQ", U32, 0)),
        "integer",
    ),
    "0 heads": (lambda: keyed(attention__head_count=0), "an integer from 1"),
    "heads that do not divide": (lambda: keyed(attention__head_count=5), "a divisor of embedding_length"),
    "KV heads that do not divide": (lambda: keyed(attention__head_count_kv=3), "a divisor of num_attention_heads"),
    "an odd rotation": (lambda: keyed(rope__dimension_count=15), "an even number"),
    "a rotation beyond the head": (lambda: keyed(rope__dimension_count=32), "partial_rotary_factor"),
    "part of a head rotated": (lambda: keyed(rope__dimension_count=8), "partial_rotary_factor"),
    "keys and values that differ": (
        lambda: keyed(attention__key_length=16, attention__value_length=8),
        "same as key_length",
    ),
    "eps 0": (lambda: keyed(attention__layer_norm_rms_epsilon=0.0), "a number from"),
    "eps NaN": (lambda: keyed(attention__layer_norm_rms_epsilon=float("nan")), "a number from"),
    "no eps": (lambda: lacking("attention.layer_norm_rms_epsilon"), "no such key"),
    "eps as an integer": (lambda: keyed(attention__layer_norm_rms_epsilon=1), "a number from"),
    "a base of 0": (lambda: keyed(rope__freq_base=0.0), "a number from 1"),
    "a base of infinity": (lambda: keyed(rope__freq_base=float("inf")), "llama.rope.freq_base: expected a number"),
    "two bases": (lambda: keyed(rope__freq_base_swa=1e6), "the same as rope.freq_base"),
    "an unknown scaling": (lambda: keyed(rope__scaling__type="longrope"), "none, linear or yarn"),
    "yarn without its context": (
        lambda: keyed(rope__scaling__type="yarn", rope__scaling__factor=4.0),
        "original_context",
    ),
    "a vocabulary of another size": (lambda: keyed(vocab_size=41), "llama.vocab_size"),
    "no embedding": (
        lambda: file_of(MIXTRAL, {n: a for n, a in mixtral_arrays().items() if "token_embd" not in n}).raw(),
        "tensor 'token_embd.weight' of two dimensions",
    ),
    "a tensor missing": (
        lambda: file_of(MIXTRAL, {n: a for n, a in mixtral_arrays().items() if n != "blk.1.ffn_norm.weight"}).raw(),
        "tensor 'blk.1.ffn_norm.weight' of shape [64], got no tensor",
    ),
    "a tensor too many": (
        lambda: file_of(MIXTRAL, {**mixtral_arrays(), "blk.0.extra.weight": np.ones(4, np.float32)}).raw(),
        "'blk.0.extra.weight' left over",
    ),
    "a tensor of another shape": (
        lambda: file_of(MIXTRAL, {**mixtral_arrays(), "blk.0.attn_k.weight": np.ones((16, 64), np.float32)}).raw(),
        "expected shape [32, 64]",
    ),
    "divisors of another length": (
        lambda: file_of(MIXTRAL, {**mixtral_arrays(), "rope_freqs.weight": np.ones(4, np.float32)}).raw(),
        "expected shape [8]",
    ),
    "divisors of 0": (
        lambda: file_of(MIXTRAL, {**mixtral_arrays(), "rope_freqs.weight": np.zeros(8, np.float32)}).raw(),
        "finite divisors",
    ),
    "two tables of rotation": (
        lambda: file_of(MIXTRAL, {**mixtral_arrays(), "rope_factors_long.weight": np.ones(8, np.float32)}).raw(),
        "one table for all lengths",
    ),
    "a vocabulary beyond 2**24": (lambda: _wide_vocabulary(), "llama.vocab_size: expected at most 16777216"),
    "more parts than there may be": (
        lambda: mixtral().with_pair("split.count", 65536).raw(),
        "split.count: expected an integer from 0 to 65535",
    ),
    "a number of parts that is a float": (lambda: mixtral().with_pair("split.count", 1.0).raw(), "an integer from 0"),
    "a split without its others": (lambda: _split(), "the first of 2 parts"),
}


def _wide_vocabulary() -> bytes:
    file = mixtral()
    n = 2**24 + 1
    file.tensors[0] = Tensor("token_embd.weight", (1, n), bytes(2 * n), 1)
    return file.raw()


def _split() -> bytes:
    return mixtral().with_pair("split.count", 2).with_pair("split.no", 0).raw()


@pytest.mark.parametrize("name", MEANING)
def test_a_model_that_is_wrong_in_one_place_is_refused(name: str, tmp_path: Path) -> None:
    make, expected = MEANING[name]
    assert expected in refused(tmp_path, make())


def test_groups_of_experts_must_divide_them(tmp_path: Path) -> None:
    metadata = {key.replace("llama.", "glm4moe."): value for key, value in MIXTRAL.items()}
    metadata |= {"general.architecture": "glm4moe", "glm4moe.expert_gating_func": 2}
    for groups, expected in ((3, "a divisor of 4 experts"), (4, "groups of two or more"), (5, "from 0 to 4")):
        raw = file_of({**metadata, "glm4moe.expert_group_count": groups}, mixtral_arrays()).raw()
        assert expected in refused(tmp_path, raw)
    chosen = {"glm4moe.expert_group_count": 2, "glm4moe.expert_group_used_count": 3}
    assert "expert_group_used_count: expected an integer from 0 to 2" in refused(
        tmp_path, file_of({**metadata, **chosen}, mixtral_arrays()).raw()
    )
    raw = file_of({**metadata, "glm4moe.expert_gating_func": 1}, mixtral_arrays()).raw()
    assert "2 (sigmoid)" in refused(tmp_path, raw)


@pytest.mark.parametrize("value", [np.nan, np.inf, 2.0**50])
def test_weights_out_of_range_are_refused_where_they_are_read(value: float, tmp_path: Path) -> None:
    arrays = mixtral_arrays()
    arrays["blk.1.ffn_up_exps.weight"][2, 3, 4] = value
    path = tmp_path / "model.gguf"
    path.write_bytes(file_of(MIXTRAL, arrays).raw())
    model = load(path)
    with pytest.raises(CheckpointError, match=r"finite weights below 2\*\*50.*experts\.2\.up\.weight'\[3, 4\]"):
        model.tensors["layers.1.experts.2.up.weight"].read()


def test_a_scale_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    file = mixtral()
    index = next(i for i, t in enumerate(file.tensors) if t.name == "blk.0.attn_q.weight")
    blocks = (struct.pack("<e", np.inf) + bytes(32)) * (64 * 64 // 32)
    file.tensors[index] = Tensor("blk.0.attn_q.weight", (64, 64), blocks, 8)
    path = tmp_path / "model.gguf"
    path.write_bytes(file.raw())
    with pytest.raises(CheckpointError, match="finite weights"):
        load(path).tensors["layers.0.attn.q.weight"].read()


def test_the_valid_file_is_taken(tmp_path: Path) -> None:
    """What the refusals start from, and what they would be blind without."""
    path = tmp_path / "model.gguf"
    path.write_bytes(mixtral().raw())
    assert load(path).config.vocab_size == 40
    for extra in (pair("x", 1, I32), pair("x", 1.5, F32), pair("x", [True, False]), pair("x", ["a", "b"])):
        file = mixtral()
        file.pairs.append(extra)
        path.write_bytes(file.raw())
        load(path)
    assert tensor("t", np.zeros((2, 3), np.float32)).dims == (3, 2)
    assert isinstance(mixtral(), File)
