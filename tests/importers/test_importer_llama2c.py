# SPDX-License-Identifier: Apache-2.0
"""llama2.c checkpoints of all three versions, written here from the layout of its export.py."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from llama2c_files import (
    DIM,
    LAYERS,
    SEQ,
    VOCAB,
    file_of,
    quantised,
    tokenizer_entries,
    weights,
)

from colibri.errors import CheckpointError
from colibri.importers import load
from colibri.tokenizer import Tokenizer

CANONICAL = {
    "wq": "attn.q",
    "wk": "attn.k",
    "wv": "attn.v",
    "wo": "attn.o",
    "w1": "ffn.gate",
    "w2": "ffn.down",
    "w3": "ffn.up",
}


def write(folder: Path, raw: bytes) -> Path:
    path = folder / "model.bin"
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_weight_is_where_it_belongs(version: int, tied: bool, tmp_path: Path) -> None:
    w = weights()
    model = load(write(tmp_path, file_of(version, tied=tied, w=w)))
    c = model.config
    assert (c.vocab_size, c.hidden_size, c.max_seq, c.tied_head, len(c.layers)) == (VOCAB, DIM, SEQ, tied, LAYERS)
    assert c.layers[0].mixer.rope.pairing == "adjacent"
    expected = {"embed.weight": w["tok_emb"], "final_norm.weight": w["final"]} | (
        {} if tied else {"head.weight": w["wcls"]}
    )
    for n in range(LAYERS):
        expected[f"layers.{n}.attn_norm.weight"] = w["att"][n]
        expected[f"layers.{n}.ffn_norm.weight"] = w["ffn"][n]
        expected |= {f"layers.{n}.{target}.weight": w[name][n] for name, target in CANONICAL.items()}
    assert set(expected) == set(model.tensors)
    for name, values in expected.items():
        if version == 2 and "norm" not in name:
            codes, scales = quantised(values)
            values = (codes.astype(np.float32) * scales[:, None]).reshape(values.shape)
        assert np.array_equal(model.tensors[name].read(), values), name


def test_the_tokenizer_beside_it_is_read_as_run_c_reads_it(tmp_path: Path) -> None:
    entries = b"".join(struct.pack("<fi", score, n) + text for score, n, text in tokenizer_entries())
    (tmp_path / "tok300.bin").write_bytes(struct.pack("<i", 6) + entries)
    raw = load(write(tmp_path, file_of(0, tied=True, w=weights()))).tokenizer_json
    assert raw is not None
    tokenizer = Tokenizer(raw, "tokenizer")
    ids = tokenizer.encode("hello é €")
    # the best pair first: " h" is none, "he" before "ll", " he" before "hell"; "€" has no token and becomes its bytes
    assert [tokenizer_entries()[i][2] for i in ids] == [
        b"\n<s>\n",
        b" he",
        b"ll",
        b"o",
        b" ",
        "é".encode(),
        b" ",
        b"<0xE2>",
        b"<0x82>",
        b"<0xAC>",
    ]
    assert tokenizer.decode(ids) == "hello é €"


def test_two_tokenizers_of_the_same_size_are_refused(tmp_path: Path) -> None:
    entries = b"".join(struct.pack("<fi", 0.0, 4) + b"%04d" % i for i in range(VOCAB))
    for name in ("tok1.bin", "tok2.bin"):
        (tmp_path / name).write_bytes(struct.pack("<i", 4) + entries)
    with pytest.raises(CheckpointError, match="one tokenizer of 300 tokens"):
        load(write(tmp_path, file_of(0, tied=True, w=weights())))


GOOD = file_of(0, tied=True, w=weights())


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (GOOD[:20], "seven numbers"),
        (GOOD[:-1], "by its header"),
        (GOOD + b"\0", "by its header"),
        (struct.pack("<i", 0) + GOOD[4:], "dim from 1"),
        (struct.pack("<i", -24) + GOOD[4:], "dim from 1"),
        (struct.pack("<i", 0x7FFFFFFF) + GOOD[4:], "dim from 1"),
        (GOOD[:12] + struct.pack("<i", 7) + GOOD[16:], "n_heads that divides"),
        (GOOD[:16] + struct.pack("<i", 4) + GOOD[20:], "n_kv_heads that divides"),
        (GOOD[:20] + struct.pack("<i", -0x80000000) + GOOD[24:], "vocab_size from 1"),
        (struct.pack("<Ii", 0x616B3432, 3) + bytes(248), "version 1 or 2"),
        (file_of(2, tied=True, w=weights())[:37] + struct.pack("<i", 7) + bytes(900), "a group that divides"),
        (b"PK\x03\x04" + GOOD, "pickle"),
        (b"\x80\x02" + GOOD, "pickle"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(raw: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=says):
        load(write(tmp_path, raw))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_arrays_that_the_file_cannot_hold_are_not_listed(version: int, tmp_path: Path) -> None:
    """65,536 layers in a few bytes took seconds and 100 MB (found by fuzzing)."""
    raw = file_of(version, tied=True, w=weights())
    at = 8 if version == 0 else 16
    path = write(tmp_path, raw[:at] + struct.pack("<i", 65536) + raw[at + 4 :])
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=r"expected (at least )?\d+ bytes, by its header"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
