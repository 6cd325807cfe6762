# SPDX-License-Identifier: Apache-2.0
"""Random models of any axes: what no published family has in a small checkpoint, and combinations of axes."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.axes import (
    Attention,
    Clamp,
    Convolution,
    Ffn,
    Groups,
    Hierarchy,
    LatentAttention,
    Layer,
    Mixer,
    Norm,
    QkNorm,
    Renormalise,
    Rope,
    Router,
    Shared,
    Temperature,
)
from colibri.model import ModelConfig, Tensor
from colibri.quantise import Policy, Stored, store
from colibri_sim.golden import GoldenModel

HIDDEN, VOCAB, CONTEXT = 36, 61, 40
RMS = Norm(1e-5)
FREQUENCIES = tuple(float(np.float32(10000.0 ** (-i / 6))) for i in range(6))
ROPE = Rope("half", FREQUENCIES)
ATTENTION = Attention(n_heads=4, n_kv_heads=2, head_dim=12, scale=float(np.float32(12**-0.5)), rope=ROPE)
LATENT = LatentAttention(
    n_heads=3,
    kv_rank=20,
    nope_dim=10,
    rope_dim=12,
    value_dim=9,
    scale=float(np.float32(22**-0.5)),
    rope=ROPE,
    norm=Norm(1e-6),
)
ROUTER = Router(n_experts=6, top_k=3)
EXPERTS = Ffn(20, router=ROUTER)


def config(mixer: Mixer = ATTENTION, ffn: Ffn = EXPERTS, **changes: Any) -> ModelConfig:
    """Two equal layers; changes are of the layer or, where it has no such field, of the model."""
    layer = Layer(mixer, ffn, attn_norm=RMS, ffn_norm=RMS)
    of_layer = {name: value for name, value in changes.items() if hasattr(layer, name)}
    of_model = {name: value for name, value in changes.items() if name not in of_layer}
    layers = (replace(layer, **of_layer),) * 2
    return replace(ModelConfig("synthetic", VOCAB, HIDDEN, CONTEXT, layers, RMS, tied_head=False), **of_model)


def tensor(name: str, shape: tuple[int, ...], seed: int) -> npt.NDArray[np.float32]:
    """Random values: norms around 1, biases and sinks of a tenth and more, matrices that keep a vector's length."""
    rng = np.random.default_rng([seed, *name.encode()])
    values = rng.standard_normal(shape)
    if name.endswith("norm.weight"):
        values = 1 + 0.2 * values
    elif len(shape) == 2:
        values *= shape[1] ** -0.5 * (2 if "router" in name else 1)
    else:
        values *= 0.3
    return values.astype(np.float32)


@cache
def weights(of: ModelConfig, quant: str, seed: int = 0) -> Any:
    """The stored tensors of a random model."""
    policy, shapes = Policy.parse(quant).resolve(of), of.tensor_shapes()

    @cache
    def read(name: str) -> Stored:
        values = tensor(name, shapes[name], seed)
        return store(Tensor(name, shapes[name], "f32", name, values.copy), policy.format_of(name))

    return read


def golden(
    of: ModelConfig, quant: str = "f32", *, kind: type[GoldenModel] = GoldenModel, **options: Any
) -> GoldenModel:
    return kind(options.pop("config", of), weights(of, quant), **options)


def ids(n: int = CONTEXT) -> list[int]:
    return [int(i) for i in np.random.default_rng(1).integers(0, VOCAB, n)]


def router(**changes: Any) -> Ffn:
    return replace(EXPERTS, router=replace(ROUTER, **changes))


def attention(**changes: Any) -> Attention:
    return replace(ATTENTION, **changes)


SCORED: dict[str, Any] = {"score": "sigmoid", "weights": "score"}
GROUPS = Groups(3, 2, "max", "excluded")
MIXTURE = attention(n_heads=6, kv_map="tile", router=ROUTER)

AXES: dict[str, ModelConfig] = {
    "plain": config(),
    "layer norm": config(attn_norm=Norm(1e-5, "layer"), ffn_norm=Norm(1e-5, "layer", bias=True)),
    "rms norm with a bias": config(attn_norm=Norm(1e-5, bias=True)),
    "norms without weights": config(attn_norm=Norm(1e-5, weight=False), final_norm=Norm(1e-5, "layer", weight=False)),
    "no norms but after": config(attn_norm=None, ffn_norm=None, attn_post_norm=RMS, ffn_post_norm=RMS),
    "norms before and after": config(attn_post_norm=RMS, ffn_post_norm=Norm(1e-6, "layer", bias=True)),
    "scales": config(residual=0.25, embedding_scale=6.0, logits_scale=0.125),
    "head bias": config(head_bias=True, logits_scale=0.5),
    "tied head": config(tied_head=True),
    "qkv and o biases": config(attention(qkv_bias=True, o_bias=True)),
    "clip": config(attention(clip=0.75)),
    "norm over the vector, clip": config(attention(clip=0.75, qk_norm=QkNorm("vector", RMS))),
    "norm over heads": config(attention(qk_norm=QkNorm("head", Norm(1e-5, "layer", bias=True)))),
    "norm over heads after": config(attention(qk_norm=QkNorm("head_after", Norm(1e-5, weight=False)))),
    "no position embedding": config(attention(rope=None)),
    "rope factor": config(attention(rope=replace(ROPE, factor=1.25))),
    "partial rotary, adjacent": config(attention(rope=Rope("adjacent", FREQUENCIES[:2]))),
    "window": config(attention(window=5)),
    "chunk": config(attention(chunk=7)),
    "sinks": config(attention(sinks=True)),
    "sinks in a window": config(attention(sinks=True, window=3)),
    "temperature": config(attention(temperature=Temperature(3, 0.3))),
    "output gate": config(attention(gate=True)),
    "tiled KV heads": config(attention(kv_map="tile")),
    "mixture of attention": config(MIXTURE),
    "mixture of attention, window, o bias": config(
        replace(MIXTURE, window=6, o_bias=True, temperature=Temperature(4, 0.2))
    ),
    "latent attention": config(LATENT),
    "latent attention, low-rank queries, biases": config(replace(LATENT, q_rank=18, bias=True)),
    "latent attention, window, adjacent": config(replace(LATENT, window=6, rope=Rope("adjacent", FREQUENCIES, 1.1))),
    "convolution": config(Convolution(3)),
    "convolution of one tap": config(Convolution(1)),
    "convolution, biases": config(Convolution(4, bias=True)),
    "plain feed-forward": config(ffn=replace(EXPERTS, gated=False, activation="relu")),
    "gelu_tanh": config(ffn=replace(EXPERTS, activation="gelu_tanh")),
    "gelu_erf": config(ffn=replace(EXPERTS, activation="gelu_erf")),
    "relu2, not gated": config(ffn=replace(EXPERTS, gated=False, activation="relu2")),
    "clamp": config(ffn=replace(EXPERTS, clamp=Clamp(0.8, 1.702))),
    "feed-forward biases": config(ffn=replace(EXPERTS, bias=True)),
    "unequal experts": config(ffn=replace(EXPERTS, widths=(20, 3, 17, 8, 11, 1))),
    "dense": config(ffn=Ffn(44)),
    "shared block": config(ffn=replace(EXPERTS, shared=Shared(28))),
    "gated shared block": config(ffn=replace(EXPERTS, shared=Shared(12, gated=True), bias=True)),
    "output bias": config(ffn=replace(EXPERTS, output_bias=True, shared=Shared(9))),
    "two-layer router": config(ffn=router(hidden="tanh", scale=1.5)),
    "router bias": config(ffn=router(bias=True)),
    "softmax of all": config(ffn=router(score="softmax", weights="score")),
    "softmax of all, renormalised": config(ffn=router(score="softmax", weights="score", renormalise=Renormalise())),
    "sigmoid scores": config(ffn=router(**SCORED, renormalise=Renormalise(eps=1e-6), scale=2.5)),
    "l2 renormalised": config(ffn=router(**SCORED, renormalise=Renormalise("l2"))),
    "floor": config(ffn=router(**SCORED, renormalise=Renormalise(floor=2.0), correction=True)),
    "correction": config(ffn=router(**SCORED, correction=True)),
    "groups by maximum": config(ffn=router(**SCORED, groups=replace(GROUPS, fill="zero"))),
    "groups by two": config(ffn=router(**SCORED, correction=True, groups=replace(GROUPS, score="top2"))),
    "groups below zero": config(ffn=router(groups=GROUPS)),
    "raw logits in groups": config(ffn=router(groups=replace(GROUPS, fill="zero", top_groups=1))),
    "sigmoid of the chosen on the input": config(ffn=router(weights="sigmoid", side="input", top_k=2)),
    "input side with a shared block": config(
        ffn=replace(router(weights="sigmoid", side="input", top_k=1), shared=Shared(8))
    ),
    "unweighted": config(ffn=router(weights="one")),
    "hierarchy": config(ffn=router(top_k=4, hierarchy=Hierarchy(3, 2))),
    "hierarchy of one of three": config(ffn=router(top_k=1, hierarchy=Hierarchy(2, 1))),
    "top-p": config(ffn=router(score="softmax", weights="score", top_p=0.6, top_k=4)),
    "top-p, renormalised, a shared block": config(
        ffn=replace(
            router(**SCORED, top_p=1.0, top_k=5, renormalise=Renormalise(), correction=True, scale=1.5),
            shared=Shared(9),
        )
    ),
    "mixed shared block": config(
        ffn=replace(router(top_k=1, score="softmax", weights="score"), shared=Shared(20, mix=True))
    ),
    "sparsemixer": config(ffn=router(method="sparsemixer", top_k=2, jitter=0.1)),
    "all experts": config(ffn=router(top_k=6)),
    "one expert": config(ffn=router(n_experts=1, top_k=1)),
    "mixed layers": replace(
        config(),
        layers=(
            Layer(Convolution(3), Ffn(24), RMS, RMS),
            Layer(attention(window=4), EXPERTS, RMS, None),
            Layer(LATENT, router(**SCORED, correction=True), None, RMS, attn_post_norm=RMS),
            Layer(MIXTURE, replace(EXPERTS, shared=Shared(5)), RMS, RMS, residual=0.5),
        ),
    ),
}
"""One axis each, or two that meet."""


def drawn(seed: int) -> ModelConfig:
    """A model of random axes, a different one in each of three layers."""
    rng = random.Random(seed)

    def norm() -> Norm:
        weight = rng.random() < 0.8
        return Norm(rng.choice((1e-5, 1e-6)), rng.choice(("rms", "layer")), weight, weight and rng.random() < 0.3)

    def maybe(value: Any, otherwise: Any = None) -> Any:
        return value if rng.random() < 0.4 else otherwise

    def route(k: int) -> Router:
        if maybe(True):
            return (
                Router(6, 2, method="sparsemixer", jitter=0.05, bias=rng.random() < 0.5)
                if k == 0
                else Router(6, k or 2)
            )
        if maybe(True):
            return Router(6, k or 4, hierarchy=Hierarchy(*((3, 3) if k else (3, 2))))
        score = rng.choice(("raw", "softmax", "sigmoid"))
        chosen = rng.choice(("softmax", "sigmoid", "one") if score == "raw" else ("score", "softmax", "sigmoid", "one"))
        return Router(
            n_experts=6,
            top_k=k or rng.choice((1, 2, 3, 4)),
            hidden=rng.choice(("none", "tanh")),
            bias=rng.random() < 0.5,
            score=score,
            correction=rng.random() < 0.5,
            groups=maybe(Groups(3, 2, rng.choice(("max", "top2")), rng.choice(("zero", "excluded")))),
            weights=chosen,
            top_p=maybe(0.5) if chosen == "score" and score != "raw" and not k else None,
            renormalise=maybe(Renormalise(rng.choice(("sum", "l2")), rng.choice((0.0, 1e-6)))),
            scale=rng.choice((1.0, 1.5)),
            side="output" if k else rng.choice(("output", "output", "input")),
        )

    def rope() -> Rope:
        return Rope(rng.choice(("half", "adjacent")), FREQUENCIES[: rng.choice((2, 6))], rng.choice((1.0, 1.2)))

    def mixer() -> Mixer:
        kind = rng.randrange(5)
        if kind == 0:
            return Convolution(rng.choice((1, 2, 4)), rng.random() < 0.5)
        if kind == 1:
            return replace(LATENT, rope=rope(), window=maybe(5), q_rank=maybe(14), bias=rng.random() < 0.5)
        span = maybe({"window": 4}, {"chunk": 6} if rng.random() < 0.5 else {})
        warm = maybe(Temperature(4, 0.2))
        if kind == 2:
            return replace(
                MIXTURE, router=route(3), rope=maybe(None, rope()), temperature=warm, o_bias=rng.random() < 0.5, **span
            )
        return attention(
            n_heads=rng.choice((2, 4, 6)),
            rope=maybe(None, rope()),
            qkv_bias=rng.random() < 0.5,
            o_bias=rng.random() < 0.5,
            clip=maybe(1.0),
            qk_norm=maybe(QkNorm(rng.choice(("vector", "head", "head_after")), norm())),
            sinks=rng.random() < 0.5,
            temperature=warm,
            gate=rng.random() < 0.5,
            kv_map=rng.choice(("interleave", "tile")),
            **span,
        )

    def ffn() -> Ffn:
        activation = rng.choice(("silu", "gelu_tanh", "gelu_erf", "relu", "relu2"))
        gated, bias = rng.random() < 0.7, rng.random() < 0.5
        clamp = Clamp(1.0, 1.702) if gated and activation == "silu" and rng.random() < 0.5 else None
        if rng.random() < 0.2:
            return Ffn(30, activation, gated, clamp, bias)
        shared = maybe(Shared(14, **rng.choice(({}, {"gated": True}, {"mix": True}))))
        widths = maybe((20, 3, 17, 8, 11, 1))
        return Ffn(20, activation, gated, clamp, bias, route(0), widths, shared, rng.random() < 0.5)

    layers = tuple(
        Layer(
            mixer(),
            ffn(),
            maybe(None, norm()),
            maybe(None, norm()),
            maybe(norm()),
            maybe(norm()),
            rng.choice((1.0, 0.5)),
        )
        for _ in range(3)
    )
    return ModelConfig(
        "drawn",
        VOCAB,
        HIDDEN,
        CONTEXT,
        layers,
        norm(),
        tied_head=rng.random() < 0.5,
        embedding_scale=rng.choice((1.0, 3.0)),
        logits_scale=rng.choice((1.0, 0.5)),
        head_bias=rng.random() < 0.5,
    )
