# SPDX-License-Identifier: Apache-2.0
"""Where the safetensors package is generous, what this reader does is decided here: each case by name."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import tiny_checkpoint as tc
from safetensors.numpy import load as load_with_package

from colibri.errors import CheckpointError
from colibri.importers import load
from colibri.importers import safetensors as st
from colibri.importers.safetensors import read_header

FIRST = "model.embed_tokens.weight"


def parts(tiny: tc.Tiny) -> tuple[bytes, bytes]:
    header = json.dumps(tc.safetensors_header(tiny.tensors)).encode()
    return header, b"".join(t.data for t in tiny.tensors.values())


@pytest.mark.parametrize("n_spaces", range(8))
def test_spaces_behind_the_header_are_taken_and_data_may_begin_anywhere(n_spaces: int, tmp_path: Path) -> None:
    tiny = tc.mixtral()
    header, data = parts(tiny)
    raw = tc.container(header + b" " * n_spaces, data)
    (tiny.write(tmp_path) / "model.safetensors").write_bytes(raw)
    expected = load_with_package(raw)[FIRST]
    assert np.array_equal(load(tmp_path).tensors["embed.weight"].read(), expected)


@pytest.mark.parametrize("shape", [(), (0,), (0, 8), (3, 0)])
def test_scalars_and_empty_tensors_are_read_and_belong_to_no_model(shape: tuple[int, ...], tmp_path: Path) -> None:
    tiny = tc.mixtral()
    tiny.tensors["extra"] = tc.f32(np.zeros(shape))
    folder = tiny.write(tmp_path)
    assert read_header(folder / "model.safetensors")["extra"].shape == shape
    assert load_with_package((folder / "model.safetensors").read_bytes())["extra"].shape == shape
    with pytest.raises(CheckpointError, match="'extra' left over"):
        load(folder)


def test_a_container_of_no_tensor_is_read_and_is_no_model(tmp_path: Path) -> None:
    tiny = tc.mixtral()
    path = tiny.write(tmp_path) / "model.safetensors"
    path.write_bytes(tc.container(b"{}", b""))
    assert read_header(path) == {}
    assert load_with_package(path.read_bytes()) == {}
    with pytest.raises(CheckpointError, match="expected tensor"):
        load(tmp_path)


def test_every_dtype_of_the_format_has_its_size(tmp_path: Path) -> None:
    """The reference: 21 names; of those below a byte only whole bytes."""
    sizes = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "I32": 4, "U32": 4, "I64": 8, "U64": 8}
    sizes |= {"F16": 2, "BF16": 2, "F32": 4, "F64": 8, "C64": 8, "F8_E4M3": 1, "F8_E5M2": 1}
    sizes |= {"F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1, "F8_E8M0": 1}
    parts_of_a_byte = {"F4": 0.5, "F6_E2M3": 0.75, "F6_E3M2": 0.75}
    assert set(st.BITS_OF_DTYPE) == {*sizes, *parts_of_a_byte}
    path = tmp_path / "model.safetensors"
    for dtype, n_bytes in {**sizes, **parts_of_a_byte}.items():
        path.write_bytes(tc.safetensors_bytes({"x": tc.Stored(dtype, (4,), bytes(int(4 * n_bytes)))}))
        assert read_header(path)["x"].dtype == dtype
        path.write_bytes(tc.safetensors_bytes({"x": tc.Stored(dtype, (3,), bytes(int(3 * n_bytes)))}))
        if dtype in parts_of_a_byte:
            with pytest.raises(CheckpointError, match="the bytes of"):
                read_header(path)
        else:
            assert read_header(path)["x"].n_bytes == 3 * n_bytes


def test_a_product_of_dimensions_does_not_wrap(tmp_path: Path) -> None:
    """2**(51 + 13) elements are none in 64 bits."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(tc.safetensors_bytes({"x": tc.Stored("U8", (2**51, 2**13), b"")}))
    with pytest.raises(CheckpointError, match="data_offsets over 0 bytes"):
        read_header(path)


@pytest.mark.parametrize("total_size", [0, -5, 2**53, "many", None])
def test_the_total_size_of_an_index_is_advice(total_size: object, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    index = tc.write_shards(tc.mixtral(), folder, 2)
    tc.write_index(folder, {**index, "metadata": {"total_size": total_size}})
    assert "embed.weight" in load(folder).tensors


QUANTISED = {
    "qweight": "GPTQ or AWQ",
    "qzeros": "GPTQ or AWQ",
    "weight.absmax": "bitsandbytes",
    "weight_packed": "compressed",
}


@pytest.mark.parametrize("suffix", QUANTISED)
def test_weights_that_others_quantised_are_recognised(suffix: str, tmp_path: Path) -> None:
    tiny = tc.mixtral()
    name = f"{tc.LAYER}self_attn.q_proj.{suffix}"
    tiny.tensors[name] = tc.Stored("I32", (1,), struct.pack("<i", 1))
    with pytest.raises(CheckpointError, match=QUANTISED[suffix]) as caught:
        load(tiny.write(tmp_path))
    assert name in caught.value.where
