# SPDX-License-Identifier: Apache-2.0
"""Name and shape of every tensor of a model, from its axes.

Row-major, ``y = W x``; V vocabulary, H hidden, N layer, J expert, d head_dim, E experts. A name is there where its axis is.

    embed.weight                   [V, H]
    relative_bias.past             [n_heads, n_buckets]   of all layers over the past; relative_bias.source the same
    layers.N.attn_norm.weight     [H]            .bias; attn_post_norm, ffn_norm, ffn_post_norm the same

    layers.N.attn.q.weight         [n_heads * d, H]       .bias
    layers.N.attn.k.weight         [n_kv_heads * d, H]    .bias; attn.v the same
    layers.N.attn.q_norm.weight    [d], over the vector [n_heads * d]; k_norm the same with n_kv_heads
    layers.N.attn.sinks            [n_heads]
    layers.N.attn.gate.weight      [n_heads * d, H]
    layers.N.attn.o.weight         [H, n_heads * d]       .bias
    (in cross-attention k and v multiply the encoder's output)
    mixture of attention: k and v as above, and
    layers.N.attn.router.weight    [E, H]
    layers.N.attn.experts.J.q.weight [n_kv_heads * d, H]
    layers.N.attn.experts.J.o.weight [H, n_kv_heads * d]
    layers.N.attn.o.bias           [H]                    on the weighted sum of the experts

    latent attention (r kv_rank, dr rope_dim, dn nope_dim, dv value_dim):
    layers.N.attn.q_a.weight       [q_rank, H]            .bias
    layers.N.attn.q_a_norm.weight  [q_rank]
    layers.N.attn.q.weight         [n_heads * (dn + dr), q_rank or H]     a head's nope part first
    layers.N.attn.kv_a.weight      [r + dr, H]            .bias; the latent first
    layers.N.attn.kv_a_norm.weight [r]
    layers.N.attn.k_up.weight      [n_heads * r, dn]      head h: rows h * r ...; the transpose of its nope key projection
    layers.N.attn.v_up.weight      [n_heads * dv, r]
    layers.N.attn.o.weight         [H, n_heads * dv]      .bias

    layers.N.conv.in.weight        [3 H, H]               .bias; b, c, u in this order
    layers.N.conv.taps.weight      [H, taps]              .bias [H]; the last tap is the present position
    layers.N.conv.out.weight       [H, H]                 .bias

    layers.N.router.hidden.weight  [E, H]                 two-layer gate; router.weight is then [E, E]
    layers.N.router.primary.weight [n_groups, H]          of a hierarchy
    layers.N.router.weight         [E, H]                 .bias; in a hierarchy the secondary gates, group by group
    layers.N.router.correction     [E]
    layers.N.experts.J.gate.weight [width, H]             .bias; up the same; gate only where gated
    layers.N.experts.J.down.weight [H, width]             .bias
    layers.N.shared.gate.weight ...                       a block of the same three
    layers.N.shared_gate.weight    [1, H]
    layers.N.shared_mix.weight     [2, H]                 .bias; of the experts' sum, of the shared block
    layers.N.ffn.gate.weight ...                          the dense block: the same three
    layers.N.ffn.bias              [H]                    on the sum of the experts

    encoder_norm.weight            [H]            .bias; only with an encoder
    final_norm.weight              [H]            .bias
    head.weight                    [V, H]         only where the head is not tied to the embedding
    head.bias                      [V]
"""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Attention, Convolution, Ffn, LatentAttention, Layer, Norm, Router

Shape = tuple[int, ...]
Named = Iterator[tuple[str, Shape]]


def layer_tensors(layer: Layer, hidden: int) -> Named:
    """The tensors of a layer, names relative to it, in the order of execution."""
    yield from _norm("attn_norm", layer.attn_norm, hidden)
    match layer.mixer:
        case Attention(router=None):
            yield from _attention(layer.mixer, hidden)
        case Attention():
            yield from _mixture_of_attention(layer.mixer, layer.mixer.router, hidden)
        case LatentAttention():
            yield from _latent_attention(layer.mixer, hidden)
        case Convolution():
            yield from _convolution(layer.mixer, hidden)
    yield from _norm("attn_post_norm", layer.attn_post_norm, hidden)
    yield from _norm("ffn_norm", layer.ffn_norm, hidden)
    if layer.ffn.width:
        yield from _ffn(layer.ffn, hidden)
    yield from _norm("ffn_post_norm", layer.ffn_post_norm, hidden)


def norm_tensors(name: str, norm: Norm, n_elems: int) -> Named:
    """Weight and bias of a norm, where it has them."""
    yield from _norm(name, norm, n_elems)


def block_tensors(name: str, ffn: Ffn, width: int, hidden: int) -> Named:
    """One feed-forward block: an expert, a shared block or a dense one."""
    matrices = [("gate", (width, hidden))] if ffn.gated else []
    for matrix, shape in (*matrices, ("up", (width, hidden)), ("down", (hidden, width))):
        yield from _linear(f"{name}.{matrix}", shape, bias=ffn.bias)


def _linear(name: str, shape: Shape, *, bias: bool = False) -> Named:
    yield f"{name}.weight", shape
    if bias:
        yield f"{name}.bias", shape[:1]


def _norm(name: str, norm: Norm | None, n_elems: int) -> Named:
    if norm is not None and norm.weight:
        yield from _linear(name, (n_elems,), bias=norm.bias)


def _attention(a: Attention, hidden: int) -> Named:
    n_q, n_kv = a.n_heads * a.head_dim, a.n_kv_heads * a.head_dim
    yield from _linear("attn.q", (n_q, hidden), bias=a.qkv_bias)
    yield from _linear("attn.k", (n_kv, hidden), bias=a.qkv_bias)
    yield from _linear("attn.v", (n_kv, hidden), bias=a.qkv_bias)
    if a.qk_norm is not None:
        whole = a.qk_norm.over == "vector"
        yield from _norm("attn.q_norm", a.qk_norm.norm, n_q if whole else a.head_dim)
        yield from _norm("attn.k_norm", a.qk_norm.norm, n_kv if whole else a.head_dim)
    if a.sinks:
        yield "attn.sinks", (a.n_heads,)
    if a.gate:
        yield from _linear("attn.gate", (n_q, hidden))
    yield from _linear("attn.o", (hidden, n_q), bias=a.o_bias)


def _mixture_of_attention(a: Attention, router: Router | None, hidden: int) -> Named:
    assert router is not None
    n_kv = a.n_kv_heads * a.head_dim
    yield from _router("attn.router", router, hidden)
    yield from _linear("attn.k", (n_kv, hidden))
    yield from _linear("attn.v", (n_kv, hidden))
    for j in range(router.n_experts):
        yield from _linear(f"attn.experts.{j}.q", (n_kv, hidden))
        yield from _linear(f"attn.experts.{j}.o", (hidden, n_kv))
    if a.o_bias:
        yield "attn.o.bias", (hidden,)


def _latent_attention(a: LatentAttention, hidden: int) -> Named:
    q_in = hidden
    if a.q_rank is not None:
        q_in = a.q_rank
        yield from _linear("attn.q_a", (a.q_rank, hidden), bias=a.bias)
        yield from _norm("attn.q_a_norm", a.norm, a.q_rank)
    yield from _linear("attn.q", (a.n_heads * (a.nope_dim + a.rope_dim), q_in))
    yield from _linear("attn.kv_a", (a.kv_rank + a.rope_dim, hidden), bias=a.bias)
    yield from _norm("attn.kv_a_norm", a.norm, a.kv_rank)
    yield from _linear("attn.k_up", (a.n_heads * a.kv_rank, a.nope_dim))
    yield from _linear("attn.v_up", (a.n_heads * a.value_dim, a.kv_rank))
    yield from _linear("attn.o", (hidden, a.n_heads * a.value_dim), bias=a.bias)


def _convolution(c: Convolution, hidden: int) -> Named:
    yield from _linear("conv.in", (3 * hidden, hidden), bias=c.bias)
    yield from _linear("conv.taps", (hidden, c.taps), bias=c.bias)
    yield from _linear("conv.out", (hidden, hidden), bias=c.bias)


def _router(name: str, router: Router, hidden: int) -> Named:
    n_in = hidden
    if router.hidden == "tanh":
        yield f"{name}.hidden.weight", (router.n_experts, hidden)
        n_in = router.n_experts
    if router.hierarchy is not None:
        yield f"{name}.primary.weight", (router.hierarchy.n_groups, hidden)
    yield from _linear(name, (router.n_experts, n_in), bias=router.bias)
    if router.correction:
        yield f"{name}.correction", (router.n_experts,)


def _ffn(ffn: Ffn, hidden: int) -> Named:
    if ffn.router is None:
        yield from block_tensors("ffn", ffn, ffn.width, hidden)
        return
    yield from _router("router", ffn.router, hidden)
    for j in range(ffn.router.n_experts):
        yield from block_tensors(f"experts.{j}", ffn, ffn.width_of(j), hidden)
    if ffn.shared is not None:
        if ffn.shared.gated:
            yield "shared_gate.weight", (1, hidden)
        if ffn.shared.mix:
            yield from _linear("shared_mix", (2, hidden), bias=True)
        yield from block_tensors("shared", ffn, ffn.shared.width, hidden)
    if ffn.output_bias:
        yield "ffn.bias", (hidden,)
