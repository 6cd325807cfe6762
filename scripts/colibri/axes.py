# SPDX-License-Identifier: Apache-2.0
"""The axes on which architectures differ, as data. docs/NUMERICS.md section 7 gives the arithmetic of each.

A family is a point in this space. Neither the engine nor the golden model knows a family's name; a default value here means
"the model has no such operation", never an operation with a neutral operand: code generated for a model holds only what it uses.
Float values are float32 values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Activation = Literal["silu", "gelu_tanh", "gelu_erf", "relu", "relu2"]


@dataclass(frozen=True)
class Norm:
    """Normalisation of a vector.

    kind    rms: ``x / sqrt(mean(x**2) + eps)``; layer: the same of ``x - mean(x)``
    eps     at least 2**-40
    weight  multiplied by a learned vector (tensor `.weight`)
    bias    plus a learned vector (tensor `.bias`); only with a weight
    """

    eps: float
    kind: Literal["rms", "layer"] = "rms"
    weight: bool = True
    bias: bool = False


@dataclass(frozen=True)
class Rope:
    """Rotary position embedding: ``theta = f32(position) * inv_freq[i]``.

    pairing   half: rotates (x[i], x[i + n/2]); adjacent: rotates (x[2i], x[2i + 1]); n = 2 * len(inv_freq)
    inv_freq  float32 values, scaling (linear, llama3, yarn) already applied
    factor    multiplies sine and cosine (yarn's and longrope's attention factor)
    """

    pairing: Literal["half", "adjacent"]
    inv_freq: tuple[float, ...]
    factor: float = 1.0

    @property
    def rotary_dim(self) -> int:
        """Elements of a head that are rotated."""
        return 2 * len(self.inv_freq)


@dataclass(frozen=True)
class QkNorm:
    """Normalisation of queries and keys.

    over  vector: the whole projection, before the split into heads; head: each head, before RoPE; head_after: after it
    """

    over: Literal["vector", "head", "head_after"]
    norm: Norm


@dataclass(frozen=True)
class Temperature:
    """Queries grow with the position: ``q *= 1 + scale * ln(1 + floor((position + 1) / interval))`` (Llama 4)."""

    interval: int
    scale: float


@dataclass(frozen=True)
class RelativeBias:
    """A learned number for each head and distance is added to each score (T5): ``z[t] += b[head][bucket(t - position)]``.

    n_buckets     half of them, in a source, for keys behind the query; of the rest, half for one distance each
    max_distance  where the last bucket begins at the latest; between, buckets widen with the logarithm

    All layers over the past share one table, and so do all over the source.
    """

    n_buckets: int
    max_distance: int


@dataclass(frozen=True)
class Groups:
    """Group-limited routing: of n_groups equal groups of experts, only the best top_groups are eligible (DeepSeek-V2, V3).

    score  of a group: max of its selection values, or the sum of its two largest
    fill   zero: the others' selection values become 0 and stay eligible; excluded: they cannot be chosen
    """

    n_groups: int
    top_groups: int
    score: Literal["max", "top2"]
    fill: Literal["zero", "excluded"]


@dataclass(frozen=True)
class Hierarchy:
    """A gate of two levels (Shazeer et al. 2017, appendix B): a primary gate chooses groups, in each a secondary one experts.

    n_groups    equal groups of consecutive experts
    top_groups  how many are chosen; of each the top_k div top_groups best experts. Their weight is the product of both gates'
    """

    n_groups: int
    top_groups: int


@dataclass(frozen=True)
class Renormalise:
    """Divide the chosen weights by ``max(norm + eps, floor)``.

    norm  sum: of the weights; l2: square root of the sum of their squares
    """

    norm: Literal["sum", "l2"] = "sum"
    eps: float = 0.0
    floor: float = 2.0**-40


@dataclass(frozen=True)
class Router:
    """Which experts run, and with what weight; in this order:

    hidden      "tanh": logits are ``W2 tanh(W1 n)``, a two-layer gate (LLaMA-MoE)
    bias        a bias on the logits
    score       s of the logits z: raw, softmax over all experts, or sigmoid
    correction  selection uses ``s + correction``, a learned vector; weights use s
    groups      see Groups
    hierarchy   see Hierarchy
    method      top_k: the k largest selection values; sparsemixer: PhiMoE's two picks, `jitter` its epsilon
    top_p       of the top_k best only the first whose s sum to at least so much: their number differs from token to token
                (dynamic top-k, Huang et al. 2024); None: all of them
    weights     of the chosen, from their s: s itself, softmax over the chosen, sigmoid, or one (unweighted sum)
    renormalise see Renormalise
    scale       multiplies the weights
    side        where the weight acts: on the expert's output, or on its input (Llama 4)
    capacity    an expert takes only so many tokens of a source; the weight of the others' is 0 (Switch). None: all
    """

    n_experts: int
    top_k: int
    hidden: Literal["none", "tanh"] = "none"
    bias: bool = False
    score: Literal["raw", "softmax", "sigmoid"] = "raw"
    correction: bool = False
    groups: Groups | None = None
    hierarchy: Hierarchy | None = None
    method: Literal["top_k", "sparsemixer"] = "top_k"
    jitter: float = 0.0
    top_p: float | None = None
    weights: Literal["score", "softmax", "sigmoid", "one"] = "softmax"
    renormalise: Renormalise | None = None
    scale: float = 1.0
    side: Literal["output", "input"] = "output"
    capacity: int | None = None


@dataclass(frozen=True)
class Attention:
    """Grouped-query attention.

    over         past: the token's own position and those before it; source: every position of the source, in a layer of
                 the encoder; encoded: keys and values are projections of the encoder's output (cross-attention)
    scale        multiplies q before the scores
    rope         None: no position embedding (NoPE)
    window       a position attends to itself and window - 1 before it; None: to all before it
    chunk        a position attends within its own chunk of so many positions; None: no chunks. Not together with window
    qkv_bias     biases on q, k and v;  o_bias: on the output projection
    clip         q, k and v are clamped to [-clip, clip] after the projection and a norm over the vector
    qk_norm      see QkNorm
    sinks        one learned score a head takes part in the softmax and gives nothing (gpt-oss)
    temperature  see Temperature
    gate         the output is multiplied by ``sigmoid(W_gate n)`` before the output projection (AfMoE)
    kv_map       KV head of query head h: interleave: h // (n_heads // n_kv_heads); tile: h % n_kv_heads
    router       mixture of attention (JetMoE): q and o are experts; n_heads = top_k * n_kv_heads, slot j has the heads
                 j * n_kv_heads ...; kv_map is tile
    relative_bias  see RelativeBias
    """

    n_heads: int
    n_kv_heads: int
    head_dim: int
    scale: float
    rope: Rope | None
    window: int | None = None
    chunk: int | None = None
    qkv_bias: bool = False
    o_bias: bool = False
    clip: float | None = None
    qk_norm: QkNorm | None = None
    sinks: bool = False
    temperature: Temperature | None = None
    gate: bool = False
    kv_map: Literal["interleave", "tile"] = "interleave"
    router: Router | None = None
    over: Literal["past", "source", "encoded"] = "past"
    relative_bias: RelativeBias | None = None


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention with absorbed up-projections (DeepSeek-V2 section 2.1): the cache holds one vector a position.

    kv_rank   r: elements of the normed latent;  rope_dim: of the rotated key shared by all heads, cached behind the latent
    nope_dim  elements of a query head that meet the latent;  value_dim: of a head's output
    q_rank    queries come from a normed vector of so many elements; None: from the layer's input directly
    norm      of both latents
    bias      biases on the projections to the latents and on the output projection
    """

    n_heads: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    scale: float
    rope: Rope
    norm: Norm
    q_rank: int | None = None
    bias: bool = False
    window: int | None = None


@dataclass(frozen=True)
class Convolution:
    """Gated short causal depthwise convolution (LFM2): ``W_out (c * conv(b * u))`` with ``(b, c, u) = W_in n``.

    taps  positions that the convolution sees, the present one included
    bias  biases on both projections and on the convolution
    """

    taps: int
    bias: bool = False


Mixer = Attention | LatentAttention | Convolution


@dataclass(frozen=True)
class Clamp:
    """Clamped SwiGLU (gpt-oss): ``(u + 1) * g * sigmoid(alpha * g)``, g at most limit, u within +-limit."""

    limit: float
    alpha: float


@dataclass(frozen=True)
class Shared:
    """A block that every token passes, added to the experts' sum.

    width  of its hidden vector
    gated  weighted by ``sigmoid(w . n)`` (Qwen2-MoE)
    mix    sum and block are weighted by the two values of ``softmax(W n + b)`` (DeepSpeed's residual experts)
    """

    width: int
    gated: bool = False
    mix: bool = False


@dataclass(frozen=True)
class Ffn:
    """Feed-forward ``down(act(gate x) * up x)``; router None: one dense block, otherwise n_experts of them.

    width        of the hidden vector; 0: the layer has no feed-forward (NO_FFN)
    gated        False: ``down(act(up x))``, there is no gate
    clamp        see Clamp; the activation is then silu
    bias         biases on gate, up and down
    widths       of the experts, where they differ; `width` is then the largest
    output_bias  a bias on the sum of the experts (JetMoE)
    """

    width: int
    activation: Activation = "silu"
    gated: bool = True
    clamp: Clamp | None = None
    bias: bool = False
    router: Router | None = None
    widths: tuple[int, ...] | None = None
    shared: Shared | None = None
    output_bias: bool = False

    def width_of(self, expert: int) -> int:
        """Width of an expert's hidden vector."""
        return self.width if self.widths is None else self.widths[expert]


NO_FFN = Ffn(0)
"""Of a layer that is a mixer alone."""


@dataclass(frozen=True)
class Layer:
    """One layer: ``x += r * post(mixer(pre(x)))``, then the same with the feed-forward, where it has one.

    A decoder's layer with cross-attention is two of these: attention over the past, without a feed-forward; then
    attention over the encoder's output, with one.

    attn_norm, ffn_norm            before each; None: none
    attn_post_norm, ffn_post_norm  after each, before the addition; None: none
    residual                        r
    """

    mixer: Mixer
    ffn: Ffn
    attn_norm: Norm | None
    ffn_norm: Norm | None
    attn_post_norm: Norm | None = None
    ffn_post_norm: Norm | None = None
    residual: float = 1.0
