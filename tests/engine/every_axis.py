# SPDX-License-Identifier: Apache-2.0
"""A model that has every axis: all of the engine compiles for it, and every table has columns."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from colibri.axes import (
    NO_FFN,
    Activation,
    Attention,
    Clamp,
    Convolution,
    Ffn,
    Groups,
    Hierarchy,
    LatentAttention,
    Layer,
    Norm,
    QkNorm,
    RelativeBias,
    Renormalise,
    Rope,
    Router,
    Shared,
    Temperature,
)
from colibri.build.config_header import config_hash, config_header, config_macros
from colibri.combinations import contradictions
from colibri.image.placement import ImageLayout, lay_out
from colibri.image.selftest import SelfTest
from colibri.image.writer import write_image
from colibri.layout.state_layout import StateLayout, state_layout
from colibri.layout.uses import uses
from colibri.model import Encoder, ModelConfig
from colibri.quantise import Policy
from verify.random_models import random_model

RMS, PLAIN = Norm(1e-5), Norm(1e-6, weight=False)
CENTRED = Norm(1e-5, "layer", bias=True)
QUANT = "embedding=f16,head=bf16,attention=q8,dense=f32,experts=q4,shared=q8:32"


def _ffn(activation: Activation, gated: bool) -> Ffn:
    return Ffn(9, activation, gated, bias=True)


ROPES = Rope("half", (1.0, 0.1), 1.25), Rope("adjacent", (0.5,))
GROUPED = Router(6, 3, "tanh", True, "sigmoid", True, Groups(3, 2, "top2", "zero"), weights="score", scale=2.0,
                 renormalise=Renormalise("l2", 1e-6))  # fmt: skip
MIXERS = (
    Attention(4, 2, 6, 0.5, ROPES[0], window=3, qkv_bias=True, o_bias=True, clip=2.0, qk_norm=QkNorm("head", PLAIN), sinks=True,
              temperature=Temperature(2, 0.1), gate=True),
    Attention(4, 2, 5, 0.5, None, chunk=4, qk_norm=QkNorm("vector", RMS), kv_map="tile"),
    LatentAttention(3, 7, 5, 2, 4, 0.3, ROPES[1], RMS, q_rank=6, bias=True),
    Convolution(3, bias=True),
    Attention(6, 2, 5, 0.4, ROPES[1], o_bias=True, kv_map="tile", router=Router(4, 3, "tanh")),
    Attention(2, 1, 7, 1.0, ROPES[0], relative_bias=RelativeBias(6, 8)),
)  # fmt: skip
FFNS = (
    Ffn(11, router=GROUPED, widths=(3, 4, 5, 6, 7, 11), shared=Shared(5, gated=True), output_bias=True),
    Ffn(8, clamp=Clamp(7.0, 1.702), router=Router(4, 2, weights="sigmoid", side="input")),
    Ffn(9, "gelu_erf", router=Router(5, 2, method="sparsemixer", jitter=0.01)),
    Ffn(7, router=Router(6, 4, hierarchy=Hierarchy(3, 2)), shared=Shared(4, mix=True)),
    Ffn(6, router=Router(5, 3, score="softmax", top_p=0.7, weights="score"), shared=Shared(3)),
    *(_ffn(a, gated) for a, gated in (("silu", True), ("silu", False), ("gelu_tanh", True), ("relu", True), ("relu2", False))),
)  # fmt: skip


def every_axis() -> ModelConfig:
    """Every axis in some layer, but those that need a source."""
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
    alone = Layer(MIXERS[1], NO_FFN, RMS, None)
    layers = (*layers, alone)
    config = ModelConfig("every", 40, 20, 12, layers, RMS, False, embedding_scale=2.0, logits_scale=0.5, head_bias=True)
    assert not list(contradictions(config))
    assert [name for name, use in uses(config).items() if not use] == ["ENCODER", "CAPACITY"]
    return config


def with_encoder(config: ModelConfig) -> ModelConfig:
    """The same as a decoder: a layer of an encoder before it, and one with cross-attention behind."""
    over = Attention(4, 2, 6, 1.0, None, qkv_bias=True, over="source", relative_bias=RelativeBias(8, 5))
    routed = Ffn(9, gated=False, router=Router(4, 1, score="softmax", weights="score", capacity=2))
    layers = (Layer(over, routed, RMS, RMS), *config.layers)
    crossing = Layer(replace(over, over="encoded", relative_bias=None), NO_FFN, CENTRED, None)
    found = replace(config, layers=(*layers, crossing), encoder=Encoder(1, 7, CENTRED))
    assert not list(contradictions(found)), list(contradictions(found))
    assert all(uses(found).values())
    return found


def equally_wide(config: ModelConfig) -> ModelConfig:
    """Experts of one layer all alike and always as many, so that the choice among them changes no number of instructions."""

    def even(ffn: Ffn) -> Ffn:
        router = None if ffn.router is None else replace(ffn.router, top_p=None)
        return replace(ffn, widths=None, router=router)

    return replace(config, layers=tuple(replace(layer, ffn=even(layer.ffn)) for layer in config.layers))


@dataclass(frozen=True)
class EveryAxis:
    """As Tiny: an engine's model_config.h, an image for it and its sizes; and more images."""

    kv: Literal["f32", "f16", "q8"] = "q8"
    model: ModelConfig = field(default_factory=every_axis)

    @property
    def config(self) -> str:
        return config_header(self._macros(), title="every axis", weights_address=0, prefix=None)

    @cached_property
    def image(self) -> bytes:
        return self.image_of(1)

    @property
    def state_bytes(self) -> int:
        return self._state.bytes

    @property
    def vocab(self) -> int:
        return self.model.vocab_size

    def image_of(self, seed: int) -> bytes:
        """Random weights."""
        out = io.BytesIO()
        write_image(out, random_model(self.model, seed), self._policy, self._layout, selftest=SelfTest((), ()),
                    config_hash=config_hash(self._macros()), load_address=0, name="every axis")  # fmt: skip
        return out.getvalue()

    def _macros(self) -> list[str]:
        return config_macros(self.model, self._layout, self._state, self.kv)

    @property
    def _state(self) -> StateLayout:
        return state_layout(self.model, self._policy, self.kv)

    @property
    def _policy(self) -> Policy:
        return Policy.parse(QUANT).resolve(self.model)

    @property
    def _layout(self) -> ImageLayout:
        return lay_out(self.model, self._policy, 64)
