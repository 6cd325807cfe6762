# SPDX-License-Identifier: Apache-2.0
"""Axes as rows of numbers: what depends on nothing but the axis itself. docs/DESIGN.md 1 lists the fields."""

from __future__ import annotations

from colibri.axes import Attention, Convolution, Ffn, LatentAttention, Mixer, Norm, QkNorm, Rope, Router
from colibri.layout.fold import Value

Row = dict[str, Value]
ATTENTION, LATENT, CONVOLUTION = range(3)
ACTIVATIONS = ("silu", "gelu_tanh", "gelu_erf", "relu", "relu2")
_QK_OVER = ("vector", "head", "head_after")
_OVER = ("past", "source", "encoded")


def norm_row(norm: Norm) -> Row:
    """The table of norms."""
    kind, weight, bias = int(norm.kind == "layer"), int(norm.weight), int(norm.bias)
    return {"eps": float(norm.eps), "is_layer": kind, "has_weight": weight, "has_bias": bias}


def router_row(r: Router) -> Row:
    """The table of routers."""
    groups, again, parted = r.groups, r.renormalise, r.groups or r.hierarchy
    return {
        "n_experts": r.n_experts,
        "top_k": r.top_k,
        "score": ("raw", "softmax", "sigmoid").index(r.score),
        "n_groups": parted.n_groups if parted else 0,
        "group_size": r.n_experts // parted.n_groups if parted else 0,
        "top_groups": parted.top_groups if parted else 0,
        "group_top2": int(groups is not None and groups.score == "top2"),
        "group_zero": int(groups is not None and groups.fill == "zero"),
        "is_hierarchical": int(r.hierarchy is not None),
        "group_top_k": r.top_k // r.hierarchy.top_groups if r.hierarchy else 0,
        "is_sparsemixer": int(r.method == "sparsemixer"),
        "jitter": float(2 * r.jitter),
        "top_p": float(r.top_p or 0),
        "weights": ("score", "softmax", "sigmoid", "one").index(r.weights),
        "renormalise": 1 + ("sum", "l2").index(again.norm) if again else 0,
        "eps": float(again.eps if again else 0),
        "floor": float(again.floor if again else 0),
        "scale": float(r.scale),
        "side_input": int(r.side == "input"),
        "capacity": r.capacity or 0,
    }


def mixer_row(mixer: Mixer, max_seq: int) -> Row:
    """The part of a kind's row that a mixer gives; what it does not have is 0."""
    row: Row = dict.fromkeys(("n_heads", "n_kv_heads", "heads_per_kv", "head_dim", "value_dim", "window", "chunk"), 0)
    row |= dict.fromkeys(
        ("is_tiled", "is_clipped", "qk_over", "q_rank", "kv_rank", "nope_dim", "rope_dim", "up_dim", "taps"), 0
    )
    row |= {"attn_top_k": 0, "attn_n_experts": 0, "temperature_interval": 0, "scale": 0.0, "clip": 0.0, "over": 0}
    match mixer:
        case Attention():
            return row | {
                "mixer": ATTENTION,
                "n_heads": mixer.n_heads,
                "n_kv_heads": mixer.n_kv_heads,
                "heads_per_kv": mixer.n_heads // mixer.n_kv_heads,
                "head_dim": mixer.head_dim,
                "value_dim": mixer.head_dim,
                "scale": float(mixer.scale),
                "window": _narrow(mixer.window, max_seq),
                "chunk": _narrow(mixer.chunk, max_seq),
                "is_clipped": int(mixer.clip is not None),
                "clip": float(mixer.clip or 0),
                "qk_over": _over(mixer.qk_norm),
                "is_tiled": int(mixer.kv_map == "tile"),
                "temperature_interval": mixer.temperature.interval if mixer.temperature else 0,
                "attn_top_k": mixer.router.top_k if mixer.router else 0,
                "attn_n_experts": mixer.router.n_experts if mixer.router else 0,
                "over": _OVER.index(mixer.over),
            }
        case LatentAttention():
            return row | {
                "mixer": LATENT,
                "n_heads": mixer.n_heads,
                "n_kv_heads": 1,
                "heads_per_kv": mixer.n_heads,
                "head_dim": mixer.kv_rank + mixer.rope_dim,
                "value_dim": mixer.kv_rank,
                "scale": float(mixer.scale),
                "window": _narrow(mixer.window, max_seq),
                "q_rank": mixer.q_rank or 0,
                "kv_rank": mixer.kv_rank,
                "nope_dim": mixer.nope_dim,
                "rope_dim": mixer.rope_dim,
                "up_dim": mixer.value_dim,
            }
        case Convolution():
            return row | {"mixer": CONVOLUTION, "taps": mixer.taps}


def rope_row(rope: Rope | None, first_pair: int) -> Row:
    """Which pairs of a head are rotated, and by which of the state's sines and cosines."""
    n_pairs = len(rope.inv_freq) if rope else 0
    half = rope is None or rope.pairing == "half"
    return {
        "rope_pairs": n_pairs,
        "rope_from": first_pair,
        "rope_step": 1 if half else 2,
        "rope_distance": n_pairs if half else 1,
    }


def ffn_row(ffn: Ffn) -> Row:
    """The part of a kind's row that the feed-forward gives."""
    n_routed, clamp = ffn.router.top_k if ffn.router else 0, ffn.clamp
    return {
        "n_experts": ffn.router.n_experts if ffn.router else 0,
        "top_k": n_routed,
        "n_slots": n_routed + (ffn.shared is not None or ffn.router is None) if ffn.width else 0,
        "activation": ACTIVATIONS.index(ffn.activation),
        "is_gated": int(ffn.gated and ffn.width > 0),
        "is_clamped": int(clamp is not None),
        "clamp_limit": float(clamp.limit if clamp else 0),
        "clamp_alpha": float(clamp.alpha if clamp else 0),
    }


def _over(qk_norm: QkNorm | None) -> int:
    return _QK_OVER.index(qk_norm.over) + 1 if qk_norm else 0


def _narrow(n_positions: int | None, max_seq: int) -> int:
    """A window or chunk; 0 where it does not end within the context."""
    return n_positions if n_positions is not None and n_positions < max_seq else 0
