# SPDX-License-Identifier: Apache-2.0
"""The model_config.h of a model that has every axis: all of the engine compiles for it, and every table has columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from colibri.axes import (
    Activation,
    Attention,
    Clamp,
    Convolution,
    Ffn,
    Groups,
    LatentAttention,
    Layer,
    Norm,
    QkNorm,
    Renormalise,
    Rope,
    Router,
    Shared,
    Temperature,
)
from colibri.build.config_header import config_header, config_macros
from colibri.combinations import contradictions
from colibri.image.placement import lay_out
from colibri.layout.state_layout import state_layout
from colibri.layout.uses import uses
from colibri.model import ModelConfig
from colibri.quantise import Policy

RMS, PLAIN = Norm(1e-5), Norm(1e-6, weight=False)
CENTRED = Norm(1e-5, "layer", bias=True)
QUANT = "embedding=f16,head=bf16,attention=q8,dense=f32,experts=q4,shared=q8:32"


def _ffn(activation: Activation, gated: bool) -> Ffn:
    return Ffn(9, activation, gated, bias=True)


ROPES = Rope("half", (1.0, 0.1), 1.25), Rope("adjacent", (0.5,))
GROUPED = Router(
    6, 3, "tanh", True, "sigmoid", True, Groups(3, 2, "top2", "zero"), weights="score", renormalise=Renormalise("l2", 1e-6), scale=2.0
)  # fmt: skip
MIXERS = (
    Attention(4, 2, 6, 0.5, ROPES[0], window=3, qkv_bias=True, o_bias=True, clip=2.0, qk_norm=QkNorm("head", PLAIN), sinks=True,
              temperature=Temperature(2, 0.1), gate=True),
    Attention(4, 2, 5, 0.5, None, chunk=4, qk_norm=QkNorm("vector", RMS), kv_map="tile"),
    LatentAttention(3, 7, 5, 2, 4, 0.3, ROPES[1], RMS, q_rank=6, bias=True),
    Convolution(3, bias=True),
    Attention(6, 2, 5, 0.4, ROPES[1], o_bias=True, kv_map="tile", router=Router(4, 3, "tanh")),
)  # fmt: skip
FFNS = (
    Ffn(11, router=GROUPED, widths=(3, 4, 5, 6, 7, 11), shared=Shared(5, gated=True), output_bias=True),
    Ffn(8, clamp=Clamp(7.0, 1.702), router=Router(4, 2, weights="sigmoid", side="input")),
    Ffn(9, "gelu_erf", router=Router(5, 2, method="sparsemixer", jitter=0.01)),
    *(_ffn(a, gated) for a, gated in (("silu", True), ("silu", False), ("gelu_tanh", True), ("relu", True), ("relu2", False))),
)  # fmt: skip


def every_axis() -> ModelConfig:
    """Every axis in some layer."""
    n = max(len(MIXERS), len(FFNS))
    norms = (RMS, CENTRED, None)
    layers = tuple(
        Layer(
            MIXERS[i % len(MIXERS)],
            FFNS[i % len(FFNS)],
            norms[i % 3],
            norms[(i + 1) % 3],
            attn_post_norm=RMS if i % 2 else None,
            ffn_post_norm=None if i % 2 else PLAIN,
            residual=0.5 if i else 1.0,
        )
        for i in range(n)
    )
    config = ModelConfig("every", 40, 20, 12, layers, RMS, False, embedding_scale=2.0, logits_scale=0.5, head_bias=True)
    assert not list(contradictions(config))
    assert all(uses(config).values()), [name for name, use in uses(config).items() if not use]
    return config


@dataclass(frozen=True)
class EveryAxis:
    """As Tiny, for what only compiles."""

    kv: Literal["f32", "f16", "q8"] = "q8"

    @property
    def config(self) -> str:
        config = every_axis()
        policy = Policy.parse(QUANT).resolve(config)
        macros = config_macros(config, lay_out(config, policy, 64), state_layout(config, policy, self.kv), self.kv)
        return config_header(macros, title="every axis", weights_address=0, prefix=None)
