# SPDX-License-Identifier: Apache-2.0
"""GGUF files written here from the format's description, byte by byte, so that each may be wrong in one place."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144)}


@dataclass
class Tensor:
    name: str
    dims: tuple[int, ...]  # fastest first
    data: bytes
    type: int = 0
    offset: int | None = None


@dataclass
class File:
    """What is written; every field may be set to something that no file may have."""

    pairs: list[tuple[str, int, bytes]] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    version: int = 3
    alignment: int = 32
    magic: bytes = b"GGUF"
    n_pairs: int | None = None
    n_tensors: int | None = None
    tail: bytes | None = None

    def raw(self) -> bytes:
        n_tensors = len(self.tensors) if self.n_tensors is None else self.n_tensors
        n_pairs = len(self.pairs) if self.n_pairs is None else self.n_pairs
        out = self.magic + struct.pack("<IQQ", self.version, n_tensors, n_pairs)
        for key, kind, value in self.pairs:
            out += text(key) + struct.pack("<I", kind) + value
        data = b""
        for t in self.tensors:
            offset = len(data) if t.offset is None else t.offset
            out += text(t.name) + struct.pack(f"<I{len(t.dims)}Q", len(t.dims), *t.dims)
            out += struct.pack("<IQ", t.type, offset)
            data += padded(t.data, self.alignment)
        return padded(out, self.alignment) + data + (self.tail or b"")

    def without(self, key: str) -> File:
        return File([p for p in self.pairs if p[0] != key], list(self.tensors))

    def with_pair(self, key: str, value: Any, kind: int | None = None) -> File:
        return File([*self.without(key).pairs, pair(key, value, kind)], list(self.tensors))


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def padded(raw: bytes, alignment: int) -> bytes:
    return raw + bytes(-len(raw) % alignment)


def pair(key: str, value: Any, kind: int | None = None) -> tuple[str, int, bytes]:
    if isinstance(value, list):
        inner = kind if kind is not None else kind_of(value[0])
        return key, ARRAY, struct.pack("<IQ", inner, len(value)) + b"".join(scalar(inner, v) for v in value)
    own = kind_of(value) if kind is None else kind
    return key, own, scalar(own, value)


def kind_of(value: Any) -> int:
    return {bool: BOOL, int: U32, float: F32, str: STRING}[type(value)]


def scalar(kind: int, value: Any) -> bytes:
    if kind == STRING:
        return text(value)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q"}[kind], value)


def tensor(name: str, values: np.ndarray) -> Tensor:
    return Tensor(name, values.shape[::-1], values.astype("<f4").tobytes())


def file_of(metadata: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | Iterable[Tensor]) -> File:
    listed = [tensor(n, a) for n, a in arrays.items()] if isinstance(arrays, Mapping) else list(arrays)
    return File([pair(key, value) for key, value in metadata.items()], listed)


H, WIDTH, VOCAB, HEADS, KV, LAYERS, EXPERTS = 64, 32, 40, 4, 2, 2, 4

MIXTRAL: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": LAYERS,
    "llama.context_length": 32,
    "llama.embedding_length": H,
    "llama.feed_forward_length": WIDTH,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10000.0,
    "llama.expert_count": EXPERTS,
    "llama.expert_used_count": 2,
}


def mixtral_arrays(seed: int = 5) -> dict[str, np.ndarray]:
    """The arrays of a small Mixtral, under GGUF's names."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (VOCAB, H), "output_norm": (H,), "output": (VOCAB, H)}
    for n in range(LAYERS):
        kv = H // HEADS * KV
        layer = {"attn_norm": (H,), "attn_q": (H, H), "attn_k": (kv, H), "attn_v": (kv, H), "attn_output": (H, H)}
        layer |= {"ffn_norm": (H,), "ffn_gate_inp": (EXPERTS, H), "ffn_gate_exps": (EXPERTS, WIDTH, H)}
        layer |= {"ffn_up_exps": (EXPERTS, WIDTH, H), "ffn_down_exps": (EXPERTS, H, WIDTH)}
        shapes |= {f"blk.{n}.{name}": shape for name, shape in layer.items()}
    return {f"{name}.weight": rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def mixtral() -> File:
    return file_of(MIXTRAL, mixtral_arrays())
