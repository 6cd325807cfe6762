# SPDX-License-Identifier: Apache-2.0
"""Models that no family has: axes drawn at random, no convenient number in them, every tensor random.

What a random configuration finds is the combination that nobody thought of: two kinds of layer whose tables differ in one column,
a stage that only one of them has, experts of unequal width behind a mixture of attention.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

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
from colibri.cli.workflow import Checkpoint
from colibri.combinations import contradictions
from colibri.model import F32Array, Model, ModelConfig, Tensor

T = TypeVar("T")
MAX_SEQ = 24


def random_checkpoint(seed: int) -> Checkpoint:
    """A model of few layers and small, odd dimensions."""
    config = random_config(random.Random(seed))
    return Checkpoint(random_model(config, seed), f"random-{seed}")


def random_model(config: ModelConfig, seed: int) -> Model:
    """A configuration with random tensors."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, shape in config.tensor_shapes().items():
        values = _values(rng, name, shape)
        tensors[name] = Tensor(name, shape, "f32", f"drawn with seed {seed}", partial(np.copy, values))
    digest = hashlib.sha256(repr((config, seed)).encode()).hexdigest()
    return Model(config, tensors, Path(), digest)


def random_config(rng: random.Random) -> ModelConfig:
    """Axes that do not contradict each other (colibri.combinations)."""
    hidden = rng.choice([5, 8, 13, 20, 24, 33])
    kinds = [_layer(rng, hidden) for _ in range(rng.randint(1, 3))]
    layers = tuple(rng.choice(kinds) for _ in range(rng.randint(1, 4)))
    tied = rng.random() < 0.3
    config = ModelConfig(
        family="random",
        vocab_size=rng.randint(3, 60),
        hidden_size=hidden,
        max_seq=MAX_SEQ,
        layers=layers,
        final_norm=_norm(rng),
        tied_head=tied,
        embedding_scale=_sometimes(rng, 3.25, 1.0),
        logits_scale=_sometimes(rng, 0.125, 1.0),
        head_bias=rng.random() < 0.2,
    )
    assert not list(contradictions(config)), list(contradictions(config))
    return config


def _values(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> F32Array:
    x = rng.standard_normal(shape)
    if name.endswith("norm.weight"):
        x = 1 + 0.2 * x
    elif name.endswith((".bias", ".correction")):
        x = 0.2 * x
    elif len(shape) == 2 and name != "embed.weight":
        x = x * shape[1] ** -0.5 * (3 if "router" in name else 1)
    return x.astype(np.float32)


def _sometimes(rng: random.Random, value: T, otherwise: T, chance: float = 0.3) -> T:
    return value if rng.random() < chance else otherwise


def _norm(rng: random.Random) -> Norm:
    weight = rng.random() < 0.8
    return Norm(
        eps=rng.choice([1e-5, 1e-6]),
        kind=rng.choice(["rms", "rms", "layer"]),
        weight=weight,
        bias=weight and rng.random() < 0.3,
    )


def _layer(rng: random.Random, hidden: int) -> Layer:
    return Layer(
        mixer=rng.choice([_attention, _attention, _mixture, _latent, _convolution])(rng),
        ffn=_ffn(rng),
        attn_norm=_sometimes(rng, None, _norm(rng), 0.15),
        ffn_norm=_sometimes(rng, None, _norm(rng), 0.15),
        attn_post_norm=_sometimes(rng, _norm(rng), None),
        ffn_post_norm=_sometimes(rng, _norm(rng), None),
        residual=_sometimes(rng, 0.22, 1.0),
    )


def _rope(rng: random.Random, head_dim: int) -> Rope:
    n_pairs = rng.randint(1, head_dim // 2)
    inv_freq = tuple(float(np.float32(rng.choice([1e4, 500.0]) ** (-i / n_pairs))) for i in range(n_pairs))
    return Rope(rng.choice(["half", "adjacent"]), inv_freq, float(np.float32(_sometimes(rng, 1.34657359, 1.0))))


def _attention(rng: random.Random) -> Mixer:
    head_dim, kv_heads = rng.choice([2, 3, 5, 8, 9, 12]), rng.randint(1, 3)
    reach = rng.choice(["all", "all", "window", "chunk"])
    over = rng.choice(["vector", "head", "head_after"])
    return Attention(
        n_heads=kv_heads * rng.randint(1, 3),
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        scale=rng.choice([head_dim**-0.5, 0.3]),
        rope=_sometimes(rng, None, _rope(rng, head_dim), 0.25),
        window=rng.choice([1, 3, 7]) if reach == "window" else None,
        chunk=rng.choice([1, 4, 5]) if reach == "chunk" else None,
        qkv_bias=rng.random() < 0.3,
        o_bias=rng.random() < 0.3,
        clip=_sometimes(rng, 0.9, None),
        qk_norm=_sometimes(rng, QkNorm(over, _norm(rng)), None, 0.4),
        sinks=rng.random() < 0.3,
        temperature=_sometimes(rng, Temperature(rng.choice([1, 4, 50]), 0.1), None),
        gate=rng.random() < 0.3,
        kv_map=rng.choice(["interleave", "tile"]),
    )


def _mixture(rng: random.Random) -> Mixer:
    router = _router(rng, rng.choice([1, 3, 6]), 3)
    router = replace(router, side="output", top_p=None)
    head_dim, kv_heads = rng.choice([2, 5, 8]), rng.randint(1, 3)
    return Attention(
        n_heads=router.top_k * kv_heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        scale=0.4,
        rope=_sometimes(rng, None, _rope(rng, head_dim), 0.2),
        window=_sometimes(rng, 5, None),
        o_bias=rng.random() < 0.5,
        temperature=_sometimes(rng, Temperature(3, 0.2), None),
        kv_map="tile",
        router=router,
    )


def _latent(rng: random.Random) -> Mixer:
    rope_dim = rng.choice([2, 4, 5])
    return LatentAttention(
        n_heads=rng.randint(1, 4),
        kv_rank=rng.choice([3, 7, 8, 17]),
        nope_dim=rng.choice([3, 6, 8]),
        rope_dim=rope_dim,
        value_dim=rng.choice([1, 5, 8, 30]),
        scale=0.35,
        rope=_rope(rng, rope_dim),
        norm=_norm(rng),
        q_rank=rng.choice([None, 5, 11]),
        bias=rng.random() < 0.4,
        window=_sometimes(rng, 6, None),
    )


def _convolution(rng: random.Random) -> Mixer:
    return Convolution(taps=rng.choice([1, 3, 4, 9]), bias=rng.random() < 0.4)


def _router(rng: random.Random, n_experts: int, most: int) -> Router:
    top_k = rng.randint(1, min(n_experts, most))
    common = {"hidden": _sometimes(rng, "tanh", "none", 0.2), "bias": rng.random() < 0.3}
    if n_experts >= 2 and rng.random() < 0.15:
        return Router(n_experts, 2, method="sparsemixer", jitter=0.01, **common)  # type: ignore[arg-type]
    if n_experts % 2 == 0 and rng.random() < 0.15:
        return _hierarchical(rng, n_experts, most)
    score = rng.choice(["raw", "softmax", "sigmoid"])
    weights = rng.choice(["score", "softmax", "sigmoid", "one"])
    top_p = rng.choice([2.0**-40, 0.3, 0.7, 1.0]) if score != "raw" and weights == "score" else None
    again = Renormalise(rng.choice(["sum", "l2"]), rng.choice([0.0, 1e-6]), rng.choice([2.0**-40, 1e-3]))
    return Router(
        n_experts,
        top_k,
        score=score,
        correction=rng.random() < 0.4,
        groups=_groups(rng, n_experts, top_k),
        weights=weights,
        top_p=_sometimes(rng, top_p, None, 0.5),
        renormalise=None if (score, weights) == ("raw", "score") else _sometimes(rng, again, None, 0.5),
        scale=_sometimes(rng, 2.5, 1.0),
        side=_sometimes(rng, "input", "output", 0.2),
        **common,  # type: ignore[arg-type]
    )


def _hierarchical(rng: random.Random, n_experts: int, most: int) -> Router:
    n_groups = rng.choice([g for g in (1, 2, 3, 5, 6) if n_experts % g == 0])
    top_groups = rng.randint(1, min(n_groups, most))
    k = rng.randint(1, min(n_experts // n_groups, most // top_groups))
    return Router(n_experts, top_groups * k, hierarchy=Hierarchy(n_groups, top_groups))


def _groups(rng: random.Random, n_experts: int, top_k: int) -> Groups | None:
    sizes = [size for size in (2, 3, 5) if n_experts % size == 0 and n_experts > size]
    if not sizes or rng.random() < 0.4:
        return None
    size = rng.choice(sizes)
    n_groups = n_experts // size
    least = -(-top_k // size)
    fill = rng.choice(["zero", "excluded"])
    return Groups(
        n_groups, rng.randint(least if fill == "excluded" else 1, n_groups), rng.choice(["max", "top2"]), fill
    )


_SHARED_WEIGHTS = ({}, {"gated": True}, {"mix": True})


def _ffn(rng: random.Random) -> Ffn:
    width = rng.choice([1, 6, 8, 11, 19, 40])
    gated = rng.random() < 0.7
    activation = rng.choice(["silu", "silu", "gelu_tanh", "gelu_erf", "relu", "relu2"])
    clamp = Clamp(1.5, 1.702) if gated and activation == "silu" and rng.random() < 0.3 else None
    bias = rng.random() < 0.3
    if rng.random() < 0.3:
        return Ffn(width, activation, gated, clamp, bias)
    n_experts = rng.choice([1, 2, 3, 5, 6, 10, 12, 30])
    widths = (*(rng.randint(1, width) for _ in range(n_experts - 1)), width)
    return Ffn(
        width,
        activation,
        gated,
        clamp,
        bias,
        router=_router(rng, n_experts, 16),
        widths=_sometimes(rng, widths, None, 0.25),
        shared=_sometimes(rng, Shared(rng.choice([3, 8, 45]), **rng.choice(_SHARED_WEIGHTS)), None, 0.4),
        output_bias=rng.random() < 0.2,
    )
