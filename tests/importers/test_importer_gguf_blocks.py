# SPDX-License-Identifier: Apache-2.0
"""Block types: values as llama.cpp's package has them, and the integers of Q8_0 and Q4_0 kept as they are."""

from __future__ import annotations

import builtins
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize
from gguf_files import Tensor, mixtral

from colibri.errors import CheckpointError, ToolError
from colibri.importers import ggml, load
from colibri.model import Model
from colibri.quantise import Format, store

ROWS, COLS = 64, 64
Q = "blk.0.attn_q.weight"


def test_sizes_are_the_packages() -> None:
    for name, block in ggml.TYPES.items():
        assert GGML_QUANT_SIZES[GGMLQuantizationType(block.id)] == (block.n_elems, block.n_bytes), name
        assert GGMLQuantizationType(block.id).name == name


def random_blocks(dtype: str, n: int, seed: int = 3) -> bytes:
    """Blocks of any bytes but for the float16 at their start, which is kept finite."""
    block = ggml.BLOCKS[dtype]
    raw = np.random.default_rng(seed).integers(0, 256, (n, block.n_bytes), dtype=np.uint8)
    n_halves = 2 if dtype in ("Q4_1", "Q5_1") else 1
    halves = np.random.default_rng(seed + 1).normal(size=(n, n_halves)).astype("<f2")
    raw[:, : 2 * n_halves] = halves.view(np.uint8).reshape(n, -1)
    return raw.tobytes()


@pytest.mark.parametrize("dtype", ggml.SMALL)
def test_our_decoders_have_the_packages_values(dtype: str) -> None:
    raw = random_blocks(dtype, 500)
    blocks = np.frombuffer(raw, np.uint8).reshape(500, -1)
    expected = dequantize(blocks, GGMLQuantizationType[dtype]).reshape(-1)
    assert np.array_equal(ggml.to_float32(raw, dtype).view(np.uint32), expected.view(np.uint32))


def with_tensor(folder: Path, dtype: str, raw: bytes, cols: int = COLS) -> Model:
    """A model whose first query matrix is stored so; `raw` is all of it."""
    file = mixtral()
    index = next(i for i, t in enumerate(file.tensors) if t.name == Q)
    file.tensors[index] = Tensor(Q, (cols, ROWS), raw, ggml.TYPES[dtype].id)
    path = folder / "model.gguf"
    path.write_bytes(file.raw())
    return load(path)


@pytest.mark.parametrize("dtype", [*ggml.SMALL, "IQ4_NL", "MXFP4"])
def test_a_tensor_of_blocks_is_read(dtype: str, tmp_path: Path) -> None:
    raw = random_blocks(dtype, ROWS * COLS // 32)
    if dtype == "MXFP4":
        raw = bytes(b if i % 17 else 120 for i, b in enumerate(raw))  # exponents of small powers
    tensor = with_tensor(tmp_path, dtype, raw).tensors["layers.0.attn.q.weight"]
    blocks = np.frombuffer(raw, np.uint8).reshape(ROWS, -1)
    assert np.array_equal(tensor.read(), dequantize(blocks, GGMLQuantizationType[dtype]))
    assert tensor.dtype == dtype.lower()


@pytest.mark.parametrize("dtype", ggml.PACKAGED)
def test_every_other_type_goes_through_the_package(dtype: str) -> None:
    """Block by block, so that neither order nor size is taken from the call that is tested."""
    block = ggml.PACKAGED[dtype]
    raw = np.random.default_rng(9).integers(0, 128, (5, block.n_bytes), dtype=np.uint8)
    with np.errstate(all="ignore"):
        each = [dequantize(row[None], GGMLQuantizationType[dtype]).reshape(-1) for row in raw]
    found = ggml.to_float32(raw.tobytes(), dtype)
    assert len(found) == 5 * block.n_elems
    assert np.array_equal(found.view(np.uint32), np.concatenate(each).view(np.uint32))


def test_q6_k_has_the_value_of_its_description() -> None:
    """``d * scale * (q - 32)``: 4 low bits of q in ql, 2 high ones in qh, 16 int8 scales, float16 d."""
    rng = np.random.default_rng(10)
    q, scales, d = rng.integers(0, 64, 256), rng.integers(-100, 100, 16), np.float16(0.01)
    low, high = np.zeros(128, np.uint8), np.zeros(64, np.uint8)
    for i, value in enumerate(q):
        half, quarter, at = i // 128, i % 128 // 32, i % 32
        low[64 * half + 32 * (quarter % 2) + at] |= (value & 15) << (4 * (quarter // 2))
        high[32 * half + at] |= (value >> 4) << (2 * quarter)
    raw = low.tobytes() + high.tobytes() + scales.astype(np.int8).tobytes() + d.tobytes()
    expected = np.float32(d) * scales.astype(np.float32).repeat(16) * (q - 32).astype(np.float32)
    assert np.allclose(ggml.to_float32(raw, "Q6_K"), expected, rtol=1e-6, atol=0)


def test_without_the_package_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "gguf":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    raw = random_blocks("IQ4_NL", ROWS * COLS // 32)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ToolError, match="the gguf package, to decode IQ4_NL") as error:
        with_tensor(tmp_path, "IQ4_NL", raw)
    assert "pip install 'colibri-firmware[gguf]'" in error.value.hint
    with_tensor(tmp_path, "Q8_0", random_blocks("Q8_0", ROWS * COLS // 32)[:])


def q8_0(q: np.ndarray, d: np.ndarray) -> bytes:
    return b"".join(struct.pack("<e", s) + row.astype(np.int8).tobytes() for row, s in zip(q, d, strict=True))


def test_q8_0_passes_through_bit_for_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    q = rng.integers(-127, 128, (ROWS * COLS // 32, 32))
    d = rng.uniform(1e-4, 1, len(q)).astype(np.float16)
    q[5], d[5] = 0, 0
    tensor = with_tensor(tmp_path, "Q8_0", q8_0(q, d)).tensors["layers.0.attn.q.weight"]
    stored = store(tensor, Format("q8", 32))
    assert np.array_equal(stored.data, q.reshape(ROWS, COLS))
    assert stored.scales is not None
    assert np.array_equal(stored.scales, d.astype(np.float32).reshape(ROWS, -1))
    assert np.array_equal(stored.values(), tensor.read())
    again = store(tensor, Format("q8", 64))
    assert not np.array_equal(again.values(), tensor.read())  # any other group is rounded anew


@pytest.mark.parametrize("dtype", ["Q8_0", "Q4_0"])
def test_negative_scales_turn_both_signs(dtype: str, tmp_path: Path) -> None:
    raw = random_blocks(dtype, ROWS * COLS // 32)
    if dtype == "Q8_0":
        raw = bytes(0x81 if b == 0x80 and i % 34 > 1 else b for i, b in enumerate(raw))
    tensor = with_tensor(tmp_path, dtype, raw).tensors["layers.0.attn.q.weight"]
    stored = store(tensor, Format("q8", 32))
    assert stored.scales is not None
    assert stored.scales.min() >= 0
    assert np.frombuffer(raw, np.uint8).reshape(-1, ggml.SMALL[dtype].n_bytes)[:, 1].max() > 127, "a negative scale"
    assert np.array_equal(stored.values(), tensor.read())


def test_experts_pass_through_each_by_itself(tmp_path: Path) -> None:
    file = mixtral()
    index = next(i for i, t in enumerate(file.tensors) if t.name == "blk.1.ffn_up_exps.weight")
    raw = random_blocks("Q4_0", 4 * 32 * 64 // 32)
    file.tensors[index] = Tensor("blk.1.ffn_up_exps.weight", (64, 32, 4), raw, 2)
    path = tmp_path / "model.gguf"
    path.write_bytes(file.raw())
    model = load(path)
    whole = dequantize(np.frombuffer(raw, np.uint8).reshape(4, 32, -1), GGMLQuantizationType.Q4_0)
    for j in range(4):
        tensor = model.tensors[f"layers.1.experts.{j}.up.weight"]
        assert np.array_equal(tensor.read(), whole[j])
        assert np.array_equal(store(tensor, Format("q8", 32)).values(), whole[j])


@pytest.mark.parametrize("scale", [0.5, -0.5])
def test_minus_128_is_refused_with_the_remedy(scale: float, tmp_path: Path) -> None:
    q = np.zeros((ROWS * COLS // 32, 32))
    q[2 * 3, 7] = -128  # row 3
    model = with_tensor(tmp_path, "Q8_0", q8_0(q, np.full(len(q), scale)))
    tensor = model.tensors["layers.0.attn.q.weight"]
    with pytest.raises(CheckpointError, match=r"row 3: expected integers from -127 to 127.*-128") as error:
        store(tensor, Format("q8", 32))
    assert "choose another format for this part, e.g. q8 or q8:64" in error.value.hint
    assert store(tensor, Format("q8")).values()[3].any()
    assert store(tensor, Format("f32")).values()[3, 7] == -128 * scale
