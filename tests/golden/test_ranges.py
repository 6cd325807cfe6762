# SPDX-License-Identifier: Apache-2.0
"""Each check that NUMERICS section 7 names ends the step where a tensor in front of it is huge, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from colibri.axes import Norm
from colibri.model import ModelConfig
from colibri.quantise import Stored
from colibri_sim.golden import GoldenModel, RangeExceeded
from colibri_sim.golden.cache import KvFormat

from .synthetic import AXES, LATENT, attention, config, ids, router, weights

KV_FORMATS: tuple[KvFormat, ...] = get_args(KvFormat)


def grown(of: ModelConfig, tensor: str, largest: float, kv: KvFormat = "f32") -> GoldenModel:
    """The model with one tensor grown so that its largest magnitude is `largest`."""

    def read(wanted: str) -> Stored:
        stored = weights(of, "f32")(wanted)
        if wanted != tensor:
            return stored
        return replace(stored, data=stored.data * np.float32(largest / np.abs(stored.data).max()))

    return GoldenModel(of, read, kv)


HUGE = 2.0**49.9
ENDS: list[tuple[str, str, float, tuple[str, int | None, int | None]]] = [
    ("norm over the vector, clip", "attn.q.weight", HUGE, ("q", 0, None)),
    ("norm over the vector, clip", "attn.k.weight", HUGE, ("k", 0, None)),
    ("norm over heads", "attn.q.weight", HUGE, ("q", 0, None)),
    ("norm over heads after", "attn.k.weight", HUGE, ("k", 0, None)),
    ("norm over heads", "attn.k_norm.weight", HUGE, ("k_rope", 0, None)),
    ("qkv and o biases", "attn.v.bias", HUGE * 1.08, ("v", 0, None)),
    ("qkv and o biases", "attn.o.bias", HUGE * 1.08, ("attn_residual", 0, None)),
    ("temperature", "attn.q.weight", HUGE, ("q_rope", 0, None)),
    ("norms before and after", "attn.o.weight", HUGE, ("attn_out", 0, None)),
    ("norms before and after", "attn_post_norm.weight", HUGE, ("attn_post_norm", 0, None)),
    ("norms before and after", "experts.1.down.weight", HUGE, ("ffn_post_norm", 0, None)),
    ("norms before and after", "ffn_post_norm.weight", HUGE, ("ffn_post_norm", 0, None)),
    ("layer norm", "ffn_norm.bias", HUGE * 1.08, ("ffn_norm", 0, None)),
    ("mixture of attention", "attn.experts.1.q.weight", HUGE, ("q_rope", 0, None)),
    ("mixture of attention", "attn.v.weight", HUGE, ("v", 0, None)),
    ("mixture of attention", "attn.experts.1.o.weight", HUGE * 8, ("attn_residual", 0, None)),
    ("latent attention, low-rank queries, biases", "attn.q_a.weight", HUGE, ("q_a", 0, None)),
    ("latent attention, low-rank queries, biases", "attn.q_a_norm.weight", HUGE, ("q_a", 0, None)),
    ("latent attention", "attn.q.weight", HUGE, ("q", 0, None)),
    ("latent attention", "attn.kv_a.weight", HUGE, ("kv_a", 0, None)),
    ("latent attention", "attn.kv_a_norm.weight", HUGE, ("k_rope", 0, None)),
    ("latent attention", "attn.k_up.weight", HUGE * 8, ("q_rope", 0, None)),
    ("latent attention", "attn.v_up.weight", HUGE, ("v_up", 0, None)),
    ("latent attention", "attn.o.weight", HUGE, ("attn_residual", 0, None)),
    ("convolution", "conv.in.weight", HUGE, ("conv_in", 0, None)),
    ("convolution", "conv.in.weight", 2.0**28, ("conv", 0, None)),
    ("convolution", "conv.taps.weight", HUGE, ("conv", 0, None)),
    ("convolution", "conv.out.weight", HUGE, ("attn_residual", 0, None)),
    ("convolution, biases", "conv.taps.bias", HUGE, ("conv", 0, None)),
    ("shared block", "shared.up.weight", HUGE, ("act", 0, 3)),
    ("feed-forward biases", "experts.2.up.bias", HUGE * 1.05, ("act", 0, None)),
    ("output bias", "ffn.bias", HUGE * 1.08, ("ffn_residual", 0, None)),
]


@pytest.mark.parametrize(("axis", "tensor", "largest", "place"), ENDS, ids=[f"{a}: {t}, {p[0]}" for a, t, _, p in ENDS])
def test_the_step_ends_at_the_check(
    axis: str, tensor: str, largest: float, place: tuple[str, int | None, int | None]
) -> None:
    model = grown(AXES[axis], f"layers.0.{tensor}", largest)
    with pytest.raises(RangeExceeded) as caught:
        model.forward(ids())
    error = caught.value
    assert (error.tensor, error.layer) == place[:2]
    assert place[2] is None or error.slot == place[2]
    model.rewind(0)
    with pytest.raises(RangeExceeded) as alone:
        one_by_one(model)
    assert alone.value.position == error.position


def one_by_one(model: GoldenModel) -> None:
    for token in ids():
        model.forward([token])


def constant(of: ModelConfig, zeros: tuple[str, ...], equal: str, value: float) -> GoldenModel:
    """The model with some tensors of layer 0 all zeros, and one whose elements are all `value`."""

    def read(wanted: str) -> Stored:
        stored, name = weights(of, "f32")(wanted), wanted.removeprefix("layers.0.")
        return (
            replace(stored, data=np.full_like(stored.data, value * (name == equal)))
            if name in (*zeros, equal)
            else stored
        )

    return GoldenModel(of, read)


def test_a_convolutions_gated_input_is_checked_though_its_taps_ignore_it() -> None:
    with pytest.raises(RangeExceeded, match="layer 0 conv reaches"):
        constant(AXES["convolution, biases"], ("conv.taps.weight",), "conv.in.bias", 2.0**27).forward(ids())


def test_the_final_norm_is_checked() -> None:
    with pytest.raises(RangeExceeded, match="position 0: final_norm reaches"):
        grown(AXES["plain"], "final_norm.weight", HUGE).forward(ids())


@pytest.mark.parametrize(
    ("of", "zeros", "equal"),
    [
        (AXES["qkv and o biases"], ("attn.v.weight", "attn.o.weight"), "attn.v.bias"),
        (
            config(replace(LATENT, norm=Norm(1e-6, bias=True))),
            ("attn.kv_a_norm.weight", "attn.v_up.weight"),
            "attn.kv_a_norm.bias",
        ),
    ],
    ids=["attention", "latent attention"],
)
def test_rounding_alone_can_take_the_attention_output_out_of_range(
    of: ModelConfig, zeros: tuple[str, ...], equal: str
) -> None:
    """Every value is the largest in range; weights whose float32 sum is above 1 do the rest."""
    with pytest.raises(RangeExceeded, match="layer 0 attn reaches"):
        constant(of, zeros, equal, float(np.nextafter(np.float32(2.0**50), np.float32(0)))).forward(ids())


@pytest.mark.parametrize("tensor", ["q", "k", "v"])
def test_what_is_clipped_is_in_range(tensor: str) -> None:
    assert np.isfinite(grown(AXES["clip"], f"layers.0.attn.{tensor}.weight", HUGE).forward(ids()).logits).all()


@pytest.mark.parametrize(
    ("of", "tensor"),
    [
        (AXES["output gate"], "layers.0.attn.gate.weight"),
        (AXES["clamp"], "layers.0.experts.1.up.weight"),
        (AXES["clamp"], "layers.0.experts.1.gate.weight"),
        (AXES["sinks"], "layers.0.attn.sinks"),
        (AXES["two-layer router"], "layers.0.router.hidden.weight"),
        (AXES["sparsemixer"], "layers.0.router.weight"),
        (AXES["gated shared block"], "layers.0.shared_gate.weight"),
        (AXES["sigmoid of the chosen on the input"], "layers.0.router.weight"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_saturates_is_in_range(of: ModelConfig, tensor: str) -> None:
    assert np.isfinite(grown(of, tensor, HUGE).forward(ids()).logits).all()


@pytest.mark.parametrize(
    ("of", "tensor", "place"),
    [
        (config(embedding_scale=2.0**49), "embed.weight", "position 0: embed reaches"),
        (config(logits_scale=2.0**49), "final_norm.weight", "position 0: logits reaches"),
        (config(residual=2.0**49), "layers.0.attn.o.weight", "layer 0 attn_residual reaches"),
        (config(attention(scale=2.0**49)), "layers.0.attn.q.weight", "layer 0 q_rope reaches"),
    ],
    ids=["embedding", "logits", "residual", "attention"],
)
def test_scales_can_leave_the_range(of: ModelConfig, tensor: str, place: str) -> None:
    with pytest.raises(RangeExceeded, match=place):
        grown(of, tensor, 2.0**7).forward(ids())


def test_a_weighted_input_is_checked_before_its_block() -> None:
    of = config(ffn=router(weights="sigmoid", side="input", scale=2.0**40))
    with pytest.raises(RangeExceeded, match="layer 0 gate slot 0 reaches"):
        grown(of, "layers.0.ffn_norm.weight", 2.0**20).forward(ids())


@pytest.mark.parametrize(
    ("axis", "tensor", "place"),
    [
        ("plain", "attn.k.weight", "k_rope"),
        ("plain", "attn.v.weight", "v"),
        ("mixture of attention", "attn.v.weight", "v"),
        ("latent attention", "attn.kv_a_norm.weight", "k_rope"),
    ],
)
def test_a_cache_of_binary16_has_a_smaller_range(axis: str, tensor: str, place: str) -> None:
    name = f"layers.0.{tensor}"
    assert np.isfinite(grown(AXES[axis], name, 2.0**16).forward(ids()).logits).all()
    with pytest.raises(RangeExceeded, match=f"layer 0 {place} reaches 65520"):
        grown(AXES[axis], name, 2.0**16, "f16").forward(ids())


def test_a_convolution_is_remembered_in_float32() -> None:
    results = [grown(AXES["convolution"], "layers.0.conv.in.weight", 2.0**10, kv).forward(ids()) for kv in KV_FORMATS]
    for other in results[1:]:
        assert np.array_equal(results[0].logits.view(np.uint32), other.logits.view(np.uint32))
