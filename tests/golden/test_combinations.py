# SPDX-License-Identifier: Apache-2.0
"""A model that the contract gives no arithmetic for is refused when it is made, and the axis is named."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from colibri.axes import Clamp, Convolution, Ffn, Groups, Norm, QkNorm, Renormalise, Rope, Shared, Temperature
from colibri.combinations import contradictions
from colibri.model import ModelConfig
from colibri_sim.golden import GoldenModel

from .oracles import NAMES, oracle
from .synthetic import (
    AXES,
    EXPERTS,
    FREQUENCIES,
    GROUPS,
    LATENT,
    MIXTURE,
    RMS,
    ROPE,
    ROUTER,
    SCORED,
    attention,
    config,
    drawn,
    router,
)


def mixed(**changes: Any) -> ModelConfig:
    return config(replace(MIXTURE, **changes))


REFUSED: list[tuple[str, ModelConfig]] = [
    ("final_norm: eps below", config(final_norm=Norm(1e-13))),
    ("layer 0: attn_post_norm: eps below", config(attn_post_norm=Norm(0.0))),
    ("layer 0: ffn_norm: a bias without a weight", config(ffn_norm=Norm(1e-5, weight=False, bias=True))),
    ("layer 0: qk_norm: eps below", config(attention(qk_norm=QkNorm("head", Norm(0.0))))),
    ("layer 0: latent norm: eps below", config(replace(LATENT, norm=Norm(0.0)))),
    ("4 heads over 3 KV heads", config(attention(n_kv_heads=3))),
    ("a window together with chunks", config(attention(window=4, chunk=4))),
    ("12 rotary dimensions in heads of 10", config(attention(head_dim=10))),
    ("12 rotary dimensions in heads of 8", config(replace(LATENT, rope_dim=8, rope=Rope("half", FREQUENCIES)))),
    ("kv_map is not tile", mixed(kv_map="interleave")),
    ("top_k \\* n_kv_heads", mixed(n_heads=4)),
    ("mixture of attention together with clip", mixed(clip=1.0)),
    ("mixture of attention together with qkv_bias", mixed(qkv_bias=True)),
    ("mixture of attention together with qk_norm", mixed(qk_norm=QkNorm("head", RMS))),
    ("mixture of attention together with sinks", mixed(sinks=True)),
    ("mixture of attention together with gate", mixed(gate=True)),
    ("mixture of attention with weights on the input", mixed(router=replace(ROUTER, side="input"))),
    ("router: 7 of 6 experts", config(ffn=router(top_k=7))),
    ("layer 0: ffn.router.top_k is 0", config(ffn=router(top_k=0))),
    ("sparsemixer picks two, not 3", config(ffn=router(method="sparsemixer"))),
    ("sparsemixer together with scale", config(ffn=router(method="sparsemixer", top_k=2, scale=2.0))),
    ("sparsemixer together with groups", config(ffn=router(method="sparsemixer", top_k=2, groups=GROUPS))),
    ("a floor below", config(ffn=router(renormalise=Renormalise(floor=0.0)))),
    ("a negative eps", config(ffn=router(renormalise=Renormalise(eps=-1.0)))),
    ("raw logits as weights", config(ffn=router(weights="score", renormalise=Renormalise()))),
    ("2 of 4 groups of 6 experts", config(ffn=router(groups=Groups(4, 2, "max", "zero")))),
    ("4 of 3 groups of 6 experts", config(ffn=router(groups=Groups(3, 4, "max", "zero")))),
    ("groups of one expert", config(ffn=router(groups=Groups(6, 4, "top2", "zero")))),
    ("3 experts from 1 groups of 2", config(ffn=router(groups=Groups(3, 1, "max", "excluded")))),
    ("a clamp is of a gated silu", config(ffn=replace(EXPERTS, clamp=Clamp(1.0, 1.0), activation="relu"))),
    ("a clamp is of a gated silu", config(ffn=replace(EXPERTS, clamp=Clamp(1.0, 1.0), gated=False))),
    ("5 widths up to 20 of 6 experts", config(ffn=replace(EXPERTS, widths=(20, 1, 2, 3, 4)))),
    ("6 widths up to 19", config(ffn=replace(EXPERTS, widths=(19, 1, 2, 3, 4, 5)))),
    ("ffn: shared without a router", config(ffn=Ffn(8, shared=Shared(4)))),
    ("ffn: widths without a router", config(ffn=Ffn(8, widths=(8,)))),
    ("ffn: output_bias without a router", config(ffn=Ffn(8, output_bias=True))),
    ("layer 0: mixer.taps is 0", config(Convolution(0))),
    ("layer 0: mixer.window is 0", config(attention(window=0))),
    ("layer 0: mixer.chunk is -1", config(attention(chunk=-1))),
    ("layer 0: mixer.temperature.interval is 0", config(attention(temperature=Temperature(0, 0.1)))),
    ("layer 0: mixer.temperature.scale is nan", config(attention(temperature=Temperature(4, math.nan)))),
    ("layer 0: mixer.scale is inf", config(attention(scale=math.inf))),
    ("layer 0: mixer.clip is 1e-13", config(attention(clip=1e-13))),
    ("layer 0: mixer.rope.factor is 1e\\+20", config(attention(rope=replace(ROPE, factor=1e20)))),
    ("layer 0: mixer.rope.inv_freq\\[1\\] is nan", config(attention(rope=Rope("half", (1.0, math.nan))))),
    ("rope: 0 rotary dimensions", config(attention(rope=Rope("half", ())))),
    ("rope: angles outside 0 to", config(attention(rope=Rope("half", (1.0, -0.5))))),
    ("rope: angles outside 0 to", config(attention(rope=Rope("half", (30000.0,))))),
    ("layer 0: residual is -1e-20", config(residual=-1e-20)),
    ("layer 0: ffn.clamp.limit is nan", config(ffn=replace(EXPERTS, clamp=Clamp(math.nan, 1.0)))),
    ("layer 0: ffn.router.scale is inf", config(ffn=router(scale=math.inf))),
    ("layer 0: ffn.router.renormalise.eps is nan", config(ffn=router(**SCORED, renormalise=Renormalise(eps=math.nan)))),
    ("layer 0: ffn.router.jitter is nan", config(ffn=router(method="sparsemixer", top_k=2, jitter=math.nan))),
    ("layer 0: ffn.widths\\[1\\] is 0", config(ffn=replace(EXPERTS, widths=(20, 0, 2, 3, 4, 5)))),
    ("layer 0: ffn.shared.width is 0", config(ffn=replace(EXPERTS, shared=Shared(0)))),
    ("embedding_scale is nan", config(embedding_scale=math.nan)),
    ("logits_scale is 1e-30", config(logits_scale=1e-30)),
]


def no_weights(name: str) -> Any:
    raise AssertionError(f"{name} was asked for")


@pytest.mark.parametrize(("message", "of"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refused(message: str, of: ModelConfig) -> None:
    with pytest.raises(ValueError, match=message):
        GoldenModel(of, no_weights)


def test_what_has_arithmetic_is_not_refused() -> None:
    for of in [*AXES.values(), *map(drawn, range(200)), *(oracle(name).config for name in NAMES)]:
        assert list(contradictions(of)) == []
    long = replace(config(attention(rope=Rope("half", (1.0,)))), max_seq=10_485_760)  # 2**20 at most are packed
    assert list(contradictions(long)) == []
    assert list(contradictions(config(ffn=router(**SCORED, renormalise=Renormalise(eps=1e-20))))) == []
