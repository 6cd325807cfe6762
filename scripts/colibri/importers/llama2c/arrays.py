# SPDX-License-Identifier: Apache-2.0
"""The arrays of a llama2.c checkpoint as named tensors, in the order of export.py, and where the canonical ones are in them.

An array holds all layers; those of version 2 are a pair for each matrix: int8 NAME and float32 NAME_group_scales.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from colibri.errors import CheckpointError
from colibri.importers.bind import Binding, Part, Skip
from colibri.importers.files import opened
from colibri.importers.llama2c.header import Header
from colibri.importers.safetensors import SourceTensor
from colibri.importers.stored import GROUP_SCALES
from colibri.importers.text import place
from colibri.model import ModelConfig

Shape = tuple[int, ...]
_UNUSED = "freq_cis"

# Canonical name within a layer, and llama2.c's.
_NORMS = {"attn_norm": "rms_att", "ffn_norm": "rms_ffn"}
_MATRICES = {"attn.q": "wq", "attn.k": "wk", "attn.v": "wv", "attn.o": "wo"}
_MATRICES |= {"ffn.gate": "w1", "ffn.down": "w2", "ffn.up": "w3"}


def lay_out(path: Path, header: Header) -> dict[str, SourceTensor]:
    """Every array at its place; raises CheckpointError where the file is longer or shorter than all of them."""
    with opened(path) as (_, state):
        pass
    sources: dict[str, SourceTensor] = {}
    at = header.n_bytes
    for name, dtype, shape in _arrays(header):
        n_bytes = math.prod(shape) * (1 if dtype == "I8" else 4)
        sources[name] = SourceTensor(name, dtype, shape, path, state, at, n_bytes)
        at += n_bytes
        if at > state.n_bytes:  # before the arrays of 65,536 layers are listed
            raise _wrong_size(path, f"at least {at} bytes, by its header", state.n_bytes)
    if at != state.n_bytes:
        raise _wrong_size(path, f"{at} bytes, by its header", state.n_bytes)
    return sources


def _wrong_size(path: Path, expected: str, got: int) -> CheckpointError:
    hint = "the file is damaged, cut short, or no llama2.c checkpoint"
    return CheckpointError(place(path), expected=expected, got=f"{got}", hint=hint)


def bindings(header: Header, config: ModelConfig) -> Iterator[Binding]:
    """Where each canonical tensor is."""
    shapes = config.tensor_shapes()
    n = header.n_layers
    yield Part("embed.weight", "tok_emb", shapes["embed.weight"])
    for layer in range(n):
        for target, source in _NORMS.items():
            yield Part(f"layers.{layer}.{target}.weight", source, (n, header.dim), (layer,))
        for target, source in _MATRICES.items():
            shape = shapes[f"layers.{layer}.{target}.weight"]
            if header.version == 2:
                yield Part(f"layers.{layer}.{target}.weight", f"{source}.{layer}", shape)
            else:
                yield Part(f"layers.{layer}.{target}.weight", source, (n, *shape), (layer,))
    yield Part("final_norm.weight", "rms_final", (header.dim,))
    if not config.tied_head:
        yield Part("head.weight", "wcls", shapes["head.weight"])
    yield Skip(_UNUSED, "the engine computes rotary positions itself")


def _arrays(h: Header) -> Iterator[tuple[str, str, Shape]]:
    """Name, dtype and shape of each array, in the order of the file."""
    d, n = h.dim, h.n_layers
    embedding = ("tok_emb", (h.vocab_size, d))
    attention = [("wq", (d, d)), ("wk", (h.kv_dim, d)), ("wv", (h.kv_dim, d)), ("wo", (d, d))]
    ffn = [("w1", (h.hidden_dim, d)), ("w2", (d, h.hidden_dim)), ("w3", (h.hidden_dim, d))]
    head: list[tuple[str, Shape]] = [] if h.tied else [("wcls", (h.vocab_size, d))]
    if h.version == 2:
        norms: list[tuple[str, Shape]] = [("rms_att", (n, d)), ("rms_ffn", (n, d)), ("rms_final", (d,))]
        for norm, norm_shape in norms:
            yield norm, "F32", norm_shape
        layered = ((f"{name}.{layer}", shape) for name, shape in (*attention, *ffn) for layer in range(n))
        for name, shape in chain((embedding,), layered, head):
            yield name, "I8", shape
            yield f"{name}{GROUP_SCALES}", "F32", (math.prod(shape) // h.group,)
        return
    matrices: dict[str, Shape] = {name: (n, *shape) for name, shape in (*attention, *ffn)}
    floats: list[tuple[str, Shape]]
    if h.version == 0:
        floats = [
            embedding,
            ("rms_att", (n, d)),
            *((name, matrices[name]) for name, _ in attention),
            ("rms_ffn", (n, d)),
        ]
        floats += [*((name, matrices[name]) for name, _ in ffn), ("rms_final", (d,))]
        floats += [(f"{_UNUSED}_{part}", (h.max_seq, h.head_dim // 2)) for part in ("real", "imag")]
    else:
        floats = [("rms_att", (n, d)), ("rms_ffn", (n, d)), ("rms_final", (d,)), embedding, *matrices.items()]
    floats += head
    for name, float_shape in floats:
        yield name, "F32", float_shape
