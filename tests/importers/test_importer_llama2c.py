# SPDX-License-Identifier: Apache-2.0
"""llama2.c checkpoints of all three versions, written here from the layout of its export.py."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from colibri.errors import CheckpointError
from colibri.importers import load
from colibri.tokenizer import Tokenizer

DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, SEQ, GROUP = 24, 40, 2, 6, 2, 300, 32, 8
KV = KV_HEADS * DIM // HEADS
SHAPES = {"wq": (DIM, DIM), "wk": (KV, DIM), "wv": (KV, DIM), "wo": (DIM, DIM)}
SHAPES |= {"w1": (HIDDEN, DIM), "w2": (DIM, HIDDEN), "w3": (HIDDEN, DIM)}
CANONICAL = {
    "wq": "attn.q",
    "wk": "attn.k",
    "wv": "attn.v",
    "wo": "attn.o",
    "w1": "ffn.gate",
    "w2": "ffn.down",
    "w3": "ffn.up",
}


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    named = {name: (LAYERS, *shape) for name, shape in SHAPES.items()}
    named |= {
        "tok_emb": (VOCAB, DIM),
        "wcls": (VOCAB, DIM),
        "att": (LAYERS, DIM),
        "ffn": (LAYERS, DIM),
        "final": (DIM,),
    }
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in named.items()}


def quantised(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As llama2.c's quantize_q80."""
    groups = w.reshape(-1, GROUP)
    scale = (np.abs(groups).max(axis=1) / np.float32(127)).astype(np.float32)
    return np.rint(groups / scale[:, None]).astype(np.int8), scale


def file_of(version: int, *, tied: bool, w: dict[str, np.ndarray]) -> bytes:
    seven = (DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, SEQ)
    head = [] if tied else ["wcls"]
    if version == 0:
        header = struct.pack("<7i", *seven[:5], VOCAB if tied else -VOCAB, SEQ)
        order = ["tok_emb", "att", "wq", "wk", "wv", "wo", "ffn", "w1", "w2", "w3", "final"]
        unused = np.full((2, SEQ, DIM // HEADS // 2), 9, np.float32)
        return header + b"".join(a.tobytes() for a in (*(w[n] for n in order), unused, *(w[n] for n in head)))
    header = struct.pack("<Ii7iB", 0x616B3432, version, *seven, tied) + (
        struct.pack("<i", GROUP) if version == 2 else b""
    )
    header += bytes(256 - len(header))
    if version == 1:
        order = ["att", "ffn", "final", "tok_emb", *SHAPES, *head]
        return header + b"".join(w[n].tobytes() for n in order)
    matrices = [w["tok_emb"], *(layer for n in SHAPES for layer in w[n]), *(w[n] for n in head)]
    norms = b"".join(w[n].tobytes() for n in ("att", "ffn", "final"))
    return header + norms + b"".join(part.tobytes() for m in matrices for part in quantised(m))


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
    texts = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *[b"<0x%02X>" % b for b in range(256)]]
    texts += [b" ", *[bytes([c]) for c in b"abdehlo"], b"he", b"ll", b" he", b"hell", b" hello", b"o d", "é".encode()]
    texts += [b"x%d" % i for i in range(VOCAB - len(texts))]
    entries = b"".join(struct.pack("<fi", -float(i) if i > 258 else 0.0, len(t)) + t for i, t in enumerate(texts))
    (tmp_path / "tok300.bin").write_bytes(struct.pack("<i", 6) + entries)
    raw = load(write(tmp_path, file_of(0, tied=True, w=weights()))).tokenizer_json
    assert raw is not None
    tokenizer = Tokenizer(raw, "tokenizer")
    ids = tokenizer.encode("hello é €")
    # the best pair first: " h" is none, "he" before "ll", " he" before "hell"; "€" has no token and becomes its bytes
    assert [texts[i] for i in ids] == [
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
