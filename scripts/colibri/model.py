# SPDX-License-Identifier: Apache-2.0
"""The one intermediate representation: a frozen configuration and lazily read named tensors.

Importers produce a `Model`; everything after them knows no file format and no family name. Each axis on which
architectures differ is data here, so that an engine or a golden model never branches on a family.

Tensor names and shapes (row-major, ``y = W x``; V vocabulary, H hidden, N layer, J expert):

    embed.weight              [V, H]
    layers.N.attn_norm.weight [H]
    layers.N.attn.q.weight    [n_heads * head_dim, H]
    layers.N.attn.k.weight    [n_kv_heads * head_dim, H]      attn.v the same
    layers.N.attn.o.weight    [H, n_heads * head_dim]
    layers.N.ffn_norm.weight  [H]
    layers.N.router.weight    [n_experts, H]                  MoE layers
    layers.N.experts.J.gate.weight [width, H]                 up the same
    layers.N.experts.J.down.weight [H, width]
    layers.N.ffn.gate.weight  [width, H]                      dense layers; up, down as above
    final_norm.weight         [H]
    head.weight               [V, H]                          only where the head is not tied to the embedding
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

F32Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Rope:
    """Rotary position embedding: ``theta = f32(position) * inv_freq[i]``.

    pairing   half: rotates (x[i], x[i + n/2]); adjacent: rotates (x[2i], x[2i + 1]); n = 2 * len(inv_freq)
    inv_freq  float32 values, scaling (linear, llama3) already applied
    """

    pairing: Literal["half", "adjacent"]
    inv_freq: tuple[float, ...]

    @property
    def rotary_dim(self) -> int:
        """Elements of a head that are rotated."""
        return 2 * len(self.inv_freq)


@dataclass(frozen=True)
class Attention:
    """Grouped-query attention; query head h reads KV head h // (n_heads // n_kv_heads).

    scale   multiplies q before the scores (a float32 value)
    window  a position attends to itself and window - 1 before it; None: to all before it
    """

    n_heads: int
    n_kv_heads: int
    head_dim: int
    scale: float
    rope: Rope
    window: int | None = None


@dataclass(frozen=True)
class Router:
    """Which experts run, and with what weight.

    score  softmax_selected: the k largest logits, then softmax over those k (= softmax over all, top-k, renormalised)
    """

    n_experts: int
    top_k: int
    score: Literal["softmax_selected"] = "softmax_selected"


@dataclass(frozen=True)
class Ffn:
    """Gated feed-forward ``down(act(gate x) * up x)``; router None: one dense block, otherwise n_experts of them."""

    width: int
    activation: Literal["silu"] = "silu"
    router: Router | None = None


@dataclass(frozen=True)
class Layer:
    """One pre-norm decoder layer."""

    attention: Attention
    ffn: Ffn


@dataclass(frozen=True)
class ModelConfig:
    """Everything about a model but its numbers.

    max_seq   context length in tokens
    norm_eps  a float32 value, at least 2**-40
    """

    family: str
    vocab_size: int
    hidden_size: int
    max_seq: int
    norm_eps: float
    tied_head: bool
    layers: tuple[Layer, ...]
    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor, in the order of the table above."""
        h, v = self.hidden_size, self.vocab_size
        shapes: dict[str, tuple[int, ...]] = {"embed.weight": (v, h)}
        for n, layer in enumerate(self.layers):
            a, f, p = layer.attention, layer.ffn, f"layers.{n}."
            shapes[p + "attn_norm.weight"] = (h,)
            shapes[p + "attn.q.weight"] = (a.n_heads * a.head_dim, h)
            shapes[p + "attn.k.weight"] = (a.n_kv_heads * a.head_dim, h)
            shapes[p + "attn.v.weight"] = (a.n_kv_heads * a.head_dim, h)
            shapes[p + "attn.o.weight"] = (h, a.n_heads * a.head_dim)
            shapes[p + "ffn_norm.weight"] = (h,)
            if f.router is None:
                blocks = ["ffn."]
            else:
                shapes[p + "router.weight"] = (f.router.n_experts, h)
                blocks = [f"experts.{j}." for j in range(f.router.n_experts)]
            for block in blocks:
                shapes[p + block + "gate.weight"] = (f.width, h)
                shapes[p + block + "up.weight"] = (f.width, h)
                shapes[p + block + "down.weight"] = (h, f.width)
        shapes["final_norm.weight"] = (h,)
        if not self.tied_head:
            shapes["head.weight"] = (v, h)
        return shapes


@dataclass(frozen=True)
class Tensor:
    """A named tensor that is read when asked for.

    source  where it comes from, for messages: file and the name in it
    dtype   of the file: f32, f16, bf16
    read    returns float32, shape `shape`, a new array at each call
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    source: str
    read: Callable[[], F32Array]


@dataclass(frozen=True)
class Generation:
    """Sampling defaults of the checkpoint's generation_config.json."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


@dataclass(frozen=True)
class Model:
    """A checkpoint as the rest of Colibri sees it.

    source_sha256  over names, shapes, dtypes and bytes of all source tensors and the config: identifies the input
    tokenizer_json the Hugging Face tokenizer.json, where the checkpoint has one
    """

    config: ModelConfig
    tensors: Mapping[str, Tensor]
    path: Path
    source_sha256: str
    generation: Generation = field(default_factory=Generation)
    tokenizer_json: bytes | None = None

    def __iter__(self) -> Iterator[Tensor]:
        return (self.tensors[name] for name in self.config.tensor_shapes())
