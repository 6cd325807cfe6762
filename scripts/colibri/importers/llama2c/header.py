# SPDX-License-Identifier: Apache-2.0
"""The header of a llama2.c checkpoint, checked before anything is believed.

0    seven int32: dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size (negative: the head is not tied), max_seq
1    u32 "ak42", int32 1, the seven (vocab_size positive), u8 tied; padded to 256 bytes
2    the same with 2, and after `tied` int32 group: int8 weights with one float32 scale for each group of them
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colibri.axes import Attention, Ffn, Layer, Norm, Rope
from colibri.errors import CheckpointError
from colibri.importers.files import opened
from colibri.importers.limits import MAX_LAYERS, MAX_ROW_ELEMS
from colibri.importers.rope import inverse_frequencies
from colibri.importers.text import place
from colibri.model import ModelConfig

MAGIC = 0x616B3432
LATER_BYTES = 256
_SEVEN = struct.Struct("<7i")
_NAMES = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "max_seq")
_LIMITS = (MAX_ROW_ELEMS, MAX_ROW_ELEMS, MAX_LAYERS, MAX_ROW_ELEMS, MAX_ROW_ELEMS, 1 << 24, 1 << 20)
_HINT = "the file is damaged, cut short, or no llama2.c checkpoint"
_THETA, _EPS = 10000.0, float(np.float32(1e-5))


@dataclass(frozen=True)
class Header:
    """The seven numbers, and where the arrays begin. group: weights that share a scale (version 2), otherwise 0."""

    version: int
    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    max_seq: int
    tied: bool
    group: int
    n_bytes: int

    @property
    def head_dim(self) -> int:
        """Elements of a head."""
        return self.dim // self.n_heads

    @property
    def kv_dim(self) -> int:
        """Elements of all key heads."""
        return self.n_kv_heads * self.head_dim

    def config(self, bos_id: int, eos_id: int) -> ModelConfig:
        """The axes: Llama with adjacent rotary pairs, as run.c computes it."""
        norm = Norm(_EPS)
        frequencies = inverse_frequencies(_THETA, self.head_dim)
        attention = Attention(
            n_heads=self.n_heads,
            n_kv_heads=self.n_kv_heads,
            head_dim=self.head_dim,
            scale=float(np.float32(self.head_dim**-0.5)),
            rope=Rope("adjacent", tuple(float(f) for f in frequencies)),
        )
        layer = Layer(attention, Ffn(self.hidden_dim), attn_norm=norm, ffn_norm=norm)
        return ModelConfig(
            family="llama2c",
            vocab_size=self.vocab_size,
            hidden_size=self.dim,
            max_seq=self.max_seq,
            layers=(layer,) * self.n_layers,
            final_norm=norm,
            tied_head=self.tied,
            bos_id=bos_id if bos_id < self.vocab_size else None,
            eos_ids=(eos_id,) if eos_id < self.vocab_size else (),
        )


def read_header(path: Path) -> Header:
    """Read and check the header; raises CheckpointError naming the number that is wrong."""
    with opened(path) as (file, _):
        raw = file.read(LATER_BYTES)
    if len(raw) < _SEVEN.size:
        raise _bad(path, "a header of seven numbers", f"a file of {len(raw)} bytes")
    magic, version = struct.unpack_from("<Ii", raw)
    if magic != MAGIC:
        dim, hidden, layers, heads, kv_heads, vocab, seq = _SEVEN.unpack_from(raw)
        header = Header(0, dim, hidden, layers, heads, kv_heads, abs(vocab), seq, vocab > 0, 0, _SEVEN.size)
    elif version in (1, 2) and len(raw) == LATER_BYTES:
        tied_byte, group = struct.unpack_from("<Bi", raw, 8 + _SEVEN.size)
        if tied_byte > 1:
            raise _bad(path, "0 or 1 for a tied head", str(tied_byte))
        dim, hidden, layers, heads, kv_heads, vocab, seq = _SEVEN.unpack_from(raw, 8)
        group *= version == 2
        header = Header(version, dim, hidden, layers, heads, kv_heads, vocab, seq, tied_byte == 1, group, LATER_BYTES)
    else:
        raise _bad(path, "version 1 or 2 and a header of 256 bytes", f"version {version}, {len(raw)} bytes")
    _check(path, header)
    return header


def _check(path: Path, h: Header) -> None:
    for name, limit in zip(_NAMES, _LIMITS, strict=True):
        if not 1 <= getattr(h, name) <= limit:
            raise _bad(path, f"{name} from 1 to {limit}", str(getattr(h, name)))
    if h.dim % h.n_heads or h.n_heads % h.n_kv_heads or h.head_dim % 2:
        raise _bad(
            path,
            "n_heads that divides dim into even heads, and n_kv_heads that divides n_heads",
            f"dim {h.dim}, n_heads {h.n_heads}, n_kv_heads {h.n_kv_heads}",
        )
    if h.version == 2 and (h.group < 1 or h.dim % h.group or h.hidden_dim % h.group):
        raise _bad(path, "a group that divides dim and hidden_dim", f"group {h.group}")


def _bad(path: Path, expected: str, got: str) -> CheckpointError:
    return CheckpointError(place(path, "header"), expected=expected, got=got, hint=_HINT)
