# SPDX-License-Identifier: Apache-2.0
"""The trace of every axis: the names and order of DESIGN.md section 4, all of them given, with their lengths."""

from __future__ import annotations

from dataclasses import replace

import pytest

from colibri.axes import Shared
from colibri.model import ModelConfig
from colibri_sim.golden import TraceName, TraceRecorder, trace_names

from .synthetic import AXES, EXPERTS, HIDDEN, config, drawn, golden, ids

FFN = ["router", "expert_ids", "expert_weights", *["gate", "up", "act", "down"] * 3]
LATENT = ["q", "kv_a", "q_rope", "k_rope", "attn", "v_up", "attn_out"]
ORDER = {
    "plain": ["attn_norm", "q", "k", "v", "q_rope", "k_rope", "attn", "attn_out", "attn_residual", "ffn_norm", *FFN],
    "no norms but after": [
        *["q", "k", "v", "q_rope", "k_rope", "attn", "attn_out", "attn_post_norm", "attn_residual"],
        *[*FFN, "ffn_post_norm"],
    ],
    "output gate": [
        *["attn_norm", "q", "k", "v", "q_rope", "k_rope", "attn", "attn_gate", "attn_out", "attn_residual"],
        *["ffn_norm", *FFN],
    ],
    "mixture of attention": [
        *["attn_norm", "attn_router", "attn_expert_ids", "attn_expert_weights"],
        *["q", "k", "v", "q_rope", "k_rope", "attn", "attn_out", "attn_residual", "ffn_norm", *FFN],
    ],
    "latent attention": ["attn_norm", *LATENT, "attn_residual", "ffn_norm", *FFN],
    "latent attention, low-rank queries, biases": ["attn_norm", "q_a", *LATENT, "attn_residual", "ffn_norm", *FFN],
    "convolution": ["attn_norm", "conv_in", "conv", "attn_out", "attn_residual", "ffn_norm", *FFN],
    "plain feed-forward": [
        *["attn_norm", "q", "k", "v", "q_rope", "k_rope", "attn", "attn_out", "attn_residual", "ffn_norm"],
        *["router", "expert_ids", "expert_weights", *["up", "act", "down"] * 3],
    ],
    "dense": [
        *["attn_norm", "q", "k", "v", "q_rope", "k_rope", "attn", "attn_out", "attn_residual", "ffn_norm"],
        *["gate", "up", "act", "down"],
    ],
}


@pytest.mark.parametrize("axis", ORDER)
def test_order(axis: str) -> None:
    names = trace_names(AXES[axis])
    assert [n.tensor for n in names if n.layer == 1] == [*ORDER[axis], "ffn_residual"]
    assert [n.tensor for n in names if n.layer is None] == ["embed", "final_norm", "logits"]


def test_a_shared_block_is_the_slot_after_the_experts() -> None:
    slots = [n.slot for n in trace_names(AXES["shared block"]) if n.layer == 0 and n.tensor == "act"]
    assert slots == [0, 1, 2, 3]


@pytest.mark.parametrize("of", [*AXES.values(), *map(drawn, range(8))], ids=[*AXES, *map(str, range(8))])
def test_every_tensor_is_given_and_no_other(of: ModelConfig) -> None:
    trace = TraceRecorder(of, keep=None)
    golden(of).forward(ids(3), trace=trace)
    assert all(None not in trace.crcs(position) for position in range(3))
    assert list(trace.values(2)) != []
    assert set(trace.values(2)) == set(trace.names)


def test_blocks_have_the_width_of_their_expert() -> None:
    widths = (20, 3, 17, 8, 11, 1)
    of = config(ffn=replace(EXPERTS, widths=widths, shared=Shared(28)))
    trace = TraceRecorder(of, keep=None)
    result = golden(of).forward(ids(), trace=trace)
    for position in range(len(ids())):
        values = trace.values(position)
        for slot, expert in enumerate(result.experts[1][position]):
            for tensor in ("gate", "up", "act"):
                assert values[TraceName(1, tensor, slot)].shape == (widths[expert],)
        assert values[TraceName(1, "act", 3)].shape == (28,)
        assert values[TraceName(1, "down", 3)].shape == (HIDDEN,)
