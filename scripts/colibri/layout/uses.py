# SPDX-License-Identifier: Apache-2.0
"""What a model's engine must hold: COLIBRI_HAS_... macros, 1 where any layer has the axis. Code of the others is not compiled."""

from __future__ import annotations

from colibri.axes import Attention, Convolution, LatentAttention, Norm, Router
from colibri.image.tables import has_rope_factor, ropes
from colibri.layout.rows import ACTIVATIONS
from colibri.layout.state_layout import has_side_input, ranks
from colibri.model import ModelConfig


def uses(config: ModelConfig) -> dict[str, int]:
    """Name without COLIBRI_HAS_ -> 0 or 1."""
    layers = config.layers
    attention = [a for layer in layers if isinstance(a := layer.mixer, Attention)]
    latent = [a for layer in layers if isinstance(a := layer.mixer, LatentAttention)]
    ffns = [layer.ffn for layer in layers if layer.ffn.width]
    moe = [f for f in ffns if f.router is not None]
    mixtures = [a.router for a in attention if a.router is not None]
    routers = [*mixtures, *(f.router for f in moe if f.router is not None)]
    norms = _norms(config)
    biases = any(name.endswith(".bias") and "norm" not in name for name in config.tensor_shapes())
    plain = [f for f in ffns if f.clamp is None]
    found = {
        "ATTENTION": bool(attention),
        "LATENT": bool(latent),
        "Q_RANK": any(a.q_rank is not None for a in latent),
        "CONVOLUTION": any(isinstance(layer.mixer, Convolution) for layer in layers),
        "MIXTURE": bool(mixtures),
        "ROPE": bool(ropes(config)),
        "ROPE_FACTOR": has_rope_factor(config),
        "QK_NORM": any(a.qk_norm is not None for a in attention),
        "CLIP": any(a.clip is not None for a in attention),
        "SINKS": any(a.sinks for a in attention),
        "TEMPERATURE": any(a.temperature is not None for a in attention),
        "ATTN_GATE": any(a.gate for a in attention),
        "BIAS": biases,
        "ATTN_POST_NORM": any(layer.attn_post_norm is not None for layer in layers),
        "FFN_POST_NORM": any(layer.ffn_post_norm is not None for layer in layers),
        "RMS_NORM": any(n.kind == "rms" for n in norms),
        "LAYER_NORM": any(n.kind == "layer" for n in norms),
        "PLAIN_NORM": any(not n.weight for n in norms),
        "NORM_BIAS": any(n.bias for n in norms),
        "RESIDUAL_FACTOR": any(layer.residual != 1 for layer in layers),
        "EMBEDDING_SCALE": config.embedding_scale != 1,
        "LOGITS_SCALE": config.logits_scale != 1,
        "EXPERTS": bool(moe),
        "DENSE": len(moe) < len(ffns),
        "SHARED": any(f.shared is not None for f in ffns),
        "SHARED_GATE": any(f.shared is not None and f.shared.gated for f in ffns),
        "SHARED_MIX": any(f.shared is not None and f.shared.mix for f in ffns),
        "SIDE_INPUT": has_side_input(config),
        "OUTPUT_BIAS": any(f.output_bias for f in ffns),
        "GATE": any(f.gated for f in ffns),
        "CLAMP": any(f.clamp is not None for f in ffns),
        "SWIGLU": any(f.gated and f.activation == "silu" for f in plain),
        "ROUTER_HIDDEN": any(r.hidden != "none" for r in routers),
        "ROUTER_SCORES": any(ranks(r) and r.hierarchy is None for r in routers),
        "GROUPS": any(r.groups is not None for r in routers),
        "HIERARCHY": any(r.hierarchy is not None for r in routers),
        "TOP_P": any(r.top_p is not None for r in routers),
        "SPARSEMIXER": any(r.method == "sparsemixer" for r in routers),
        "ROUTER_WEIGHTS": any(not _is_plain(r) for r in routers),
        "ENCODER": config.encoder is not None,
        "RELATIVE_BIAS": bool(config.relative_biases),
        "CAPACITY": any(r.capacity is not None for r in routers),
        "NO_FFN": len(ffns) < len(layers),
    }
    for activation in ACTIVATIONS:
        others = [f for f in plain if f.activation == activation and not (f.gated and activation == "silu")]
        found[f"ACT_{activation.upper()}"] = bool(others)
    return {name: int(value) for name, value in found.items()}


def depends_on_data(config: ModelConfig) -> list[str]:
    """The axes for which the number of instructions depends on the data, by design (docs/NUMERICS.md 10)."""
    routers = [layer.ffn.router for layer in config.layers]
    found = {
        "router.top_p": any(r is not None and r.top_p is not None for r in routers),
        "ffn.widths": any(len(set(layer.ffn.widths or ())) > 1 for layer in config.layers),
    }
    return [axis for axis, there in found.items() if there]


_OF_EVERY_BUDGET = {"ATTENTION", "ROPE", "RMS_NORM", "EXPERTS", "DENSE", "GATE", "SWIGLU"}
"""Axes of the models for which linker/budgets.toml was measured."""


def extra_axes(config: ModelConfig) -> int:
    """How many axes the engine has beyond those of a Mixtral or Llama; layers of several kinds count as one."""
    extra = sum(use for name, use in uses(config).items() if name not in _OF_EVERY_BUDGET)
    return extra + (len(set(config.layers)) > 1)


def _norms(config: ModelConfig) -> list[Norm]:
    """Every norm that an engine computes."""
    found = [config.final_norm, *([config.encoder.final_norm] if config.encoder else [])]
    for layer in config.layers:
        found += [n for n in (layer.attn_norm, layer.attn_post_norm, layer.ffn_norm, layer.ffn_post_norm) if n]
        if isinstance(layer.mixer, Attention) and layer.mixer.qk_norm is not None:
            found.append(layer.mixer.qk_norm.norm)
        if isinstance(layer.mixer, LatentAttention):
            found.append(layer.mixer.norm)
    return found


def _is_plain(r: Router) -> bool:
    """Softmax over the chosen and nothing after it."""
    return r.method == "top_k" and r.weights == "softmax" and r.renormalise is None and r.scale == 1
