# SPDX-License-Identifier: Apache-2.0
"""llama2.c checkpoints of all three versions, written here from the layout of its export.py, and its tokenizer.bin."""

from __future__ import annotations

import struct

import numpy as np

DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, SEQ, GROUP = 24, 40, 2, 6, 2, 300, 32, 8
KV = KV_HEADS * DIM // HEADS
SHAPES = {"wq": (DIM, DIM), "wk": (KV, DIM), "wv": (KV, DIM), "wo": (DIM, DIM)}
SHAPES |= {"w1": (HIDDEN, DIM), "w2": (DIM, HIDDEN), "w3": (HIDDEN, DIM)}


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


def tokenizer_entries() -> list[tuple[float, int, bytes]]:
    """Score, bytes and text of each token."""
    texts = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *[b"<0x%02X>" % b for b in range(256)]]
    texts += [b" ", *[bytes([c]) for c in b"abdehlo"], b"he", b"ll", b" he", b"hell", b" hello", b"o d", "é".encode()]
    texts += [b"x%d" % i for i in range(VOCAB - len(texts))]
    return [(-float(i) if i > 258 else 0.0, len(text), text) for i, text in enumerate(texts)]
