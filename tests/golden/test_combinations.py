# SPDX-License-Identifier: Apache-2.0
"""A model that the contract gives no arithmetic for is refused when it is made, and the axis is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from colibri.axes import Clamp, Convolution, Ffn, Groups, Norm, QkNorm, Renormalise, Rope, Shared
from colibri.combinations import contradictions
from colibri.model import ModelConfig
from colibri_sim.golden import GoldenModel

from .synthetic import (
    AXES,
    EXPERTS,
    FREQUENCIES,
    GROUPS,
    LATENT,
    MIXTURE,
    RMS,
    ROUTER,
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
    ("router: 0 of 6 experts", config(ffn=router(top_k=0))),
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
    ("a convolution without taps", config(Convolution(0))),
]


def no_weights(name: str) -> Any:
    raise AssertionError(f"{name} was asked for")


@pytest.mark.parametrize(("message", "of"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refused(message: str, of: ModelConfig) -> None:
    with pytest.raises(ValueError, match=message):
        GoldenModel(of, no_weights)


def test_what_has_arithmetic_is_not_refused() -> None:
    for of in [*AXES.values(), *map(drawn, range(200))]:
        assert list(contradictions(of)) == []
