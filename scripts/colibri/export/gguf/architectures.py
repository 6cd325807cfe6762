# SPDX-License-Identifier: Apache-2.0
"""The architectures of llama.cpp's that are written: which models each is for, and the axes as its keys.

What an architecture has no key for is not checked here axis by axis: the file is read back, and the axes must be the same. Here
is what reading back cannot show: that llama.cpp's reader asks for tensors which a model may not have, or has no place for some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from colibri.axes import Attention, Ffn, LatentAttention, Layer, Router
from colibri.export.gguf.refusal import refused
from colibri.export.gguf.rotation import frequencies, rope_of
from colibri.export.gguf.writer import Value
from colibri.model import ModelConfig

Keys = dict[str, Value]
_SOFTMAX, _SIGMOID = 1, 2


@dataclass(frozen=True)
class Written:
    """One architecture.

    fits       whether a model is of this kind
    keys       those it has beside everyone's
    divisors   it takes a table that divides the rotary frequencies
    own_head   it needs a head that is not the embedding
    o_bias     it takes a bias on the attention's output
    square     all heads together are as wide as the hidden vector
    """

    fits: Callable[[ModelConfig], bool]
    keys: Callable[[ModelConfig], Keys] = lambda _: {}
    divisors: bool = False
    own_head: bool = False
    o_bias: bool = False
    square: bool = False


def find_architecture(config: ModelConfig) -> str:
    """Return the architecture whose tensors the model has; raises UsageError where there is none."""
    for layer in dict.fromkeys(config.layers):
        _check_names(layer)
    name = next((name for name, written in WRITTEN.items() if written.fits(config)), None)
    if name is None:
        raise refused(f"norms of q and k, experts and shared blocks as one of {', '.join(WRITTEN)} has", "others")
    _check_loads(config, name)
    return name


def keys(config: ModelConfig, architecture: str) -> Keys:
    """Return the architecture's keys, without it in front."""
    layer, written = config.layers[0], WRITTEN[architecture]
    assert layer.attn_norm is not None
    rope = rope_of(config)
    theta, _ = frequencies(rope, divisors=written.divisors)
    return {
        "block_count": len(config.layers),
        "context_length": config.max_seq,
        "embedding_length": config.hidden_size,
        "vocab_size": config.vocab_size,
        "feed_forward_length": layer.ffn.width,
        "attention.head_count": _mixer(config).n_heads,
        "attention.layer_norm_rms_epsilon": layer.attn_norm.eps,
        "rope.freq_base": theta,
        "rope.dimension_count": rope.rotary_dim,
        **_heads(config),
        **_experts(config),
        **written.keys(config),
    }


def _check_names(layer: Layer) -> None:
    """Refuse what has no tensor or table in any architecture here."""
    mixer, ffn = layer.mixer, layer.ffn
    rotated = "attention with rotary positions in every layer"
    if not isinstance(mixer, Attention | LatentAttention):
        raise refused(rotated, type(mixer).__name__)
    if mixer.rope is None:
        raise refused(rotated, "one without")
    if isinstance(mixer, Attention) and mixer.router is not None:
        raise refused(rotated, "a mixture of attention")
    if layer.attn_norm is None:
        raise refused("a norm before the attention", "none")
    if ffn.router is not None and ffn.router.hidden != "none":
        raise refused("routers of one matrix", "a gate of two layers")
    if ffn.widths is not None:
        raise refused("experts of one width", "several")
    if ffn.output_bias:
        raise refused("no bias on the sum of the experts", "one")


def _check_loads(config: ModelConfig, name: str) -> None:
    written, mixer = WRITTEN[name], _mixer(config)
    if written.own_head and config.tied_head:
        raise refused(f"a head of its own, which {name} needs", "one that is the embedding")
    if isinstance(mixer, LatentAttention):
        _check_query_latent(config, mixer)
        return
    if mixer.o_bias and not written.o_bias:
        raise refused(f"no bias on the attention's output, for which {name} has no place", "one")
    if written.square and mixer.n_heads * mixer.head_dim != config.hidden_size:
        raise refused(
            f"heads of {name} that are together as wide as the hidden vector, {config.hidden_size}",
            f"{mixer.n_heads} of {mixer.head_dim}",
        )
    if name == "olmoe" and mixer.n_kv_heads != mixer.n_heads:
        raise refused("as many heads of keys as of queries, as olmoe has", f"{mixer.n_kv_heads} and {mixer.n_heads}")


def _check_query_latent(config: ModelConfig, mixer: LatentAttention) -> None:
    """llama.cpp tells DeepSeek-V2-Lite, whose queries have no latent, and its like by these numbers."""
    n, vocab_size = len(config.layers), config.vocab_size
    is_lite = n in (26, 27) or (n, vocab_size) == (48, 128256)
    if is_lite != (mixer.q_rank is None):
        wanted = "without" if is_lite else "with"
        raise refused(f"queries {wanted} a latent in deepseek2 of {n} layers", "one" if is_lite else "none")


def _mixer(config: ModelConfig) -> Attention | LatentAttention:
    mixer = config.layers[0].mixer
    assert isinstance(mixer, Attention | LatentAttention)
    return mixer


def _last(config: ModelConfig) -> Ffn:
    """The feed-forward that tells the kind: dense layers, where there are any, come first."""
    return config.layers[-1].ffn


def _router(config: ModelConfig) -> Router:
    router = _last(config).router
    assert router is not None
    return router


def _heads(config: ModelConfig) -> Keys:
    mixer = _mixer(config)
    if isinstance(mixer, Attention):
        return {
            "attention.head_count_kv": mixer.n_kv_heads,
            "attention.key_length": mixer.head_dim,
            "attention.value_length": mixer.head_dim,
        }
    ranks: Keys = {} if mixer.q_rank is None else {"attention.q_lora_rank": mixer.q_rank}
    return ranks | {
        "attention.head_count_kv": 1,  # the latent, which all heads share
        "attention.key_length": mixer.kv_rank + mixer.rope_dim,
        "attention.value_length": mixer.kv_rank,
        "attention.key_length_mla": mixer.nope_dim + mixer.rope_dim,
        "attention.value_length_mla": mixer.value_dim,
        "attention.kv_lora_rank": mixer.kv_rank,
    }


def _experts(config: ModelConfig) -> Keys:
    ffn = _last(config)
    if ffn.router is None:
        return {}
    return {"expert_count": ffn.router.n_experts, "expert_used_count": ffn.router.top_k}


def _width(config: ModelConfig) -> Keys:
    return {"expert_feed_forward_length": _last(config).width}


def _shared_width(config: ModelConfig) -> Keys:
    shared = _last(config).shared
    return {} if shared is None else {"expert_shared_feed_forward_length": shared.width}


def _after_dense(config: ModelConfig) -> Keys:
    """DeepSeek's layout: shared experts are counted, and the dense layers before the first with experts."""
    ffn = _last(config)
    n_shared, rest = divmod(ffn.shared.width if ffn.shared is not None else 0, ffn.width)
    if rest or not n_shared:
        raise refused("a shared block as wide as one or more experts", f"experts of {ffn.width} and another width")
    return {
        **_width(config),
        "leading_dense_block_count": sum(layer.ffn.router is None for layer in config.layers),
        "expert_shared_count": n_shared,
        "expert_weights_scale": _router(config).scale,
    }


def _deepseek2(config: ModelConfig) -> Keys:
    router, mixer = _router(config), _mixer(config)
    assert isinstance(mixer, LatentAttention)
    if config.final_norm.eps != mixer.norm.eps:
        raise refused("one epsilon for all norms", "another for the latents")
    groups: Keys = {}
    if router.groups is not None:
        groups = {
            "expert_group_count": router.groups.n_groups,
            "expert_group_used_count": router.groups.top_groups,
        }
    return {
        **_after_dense(config),
        **groups,
        "expert_weights_norm": router.renormalise is not None,
        "expert_gating_func": _SIGMOID if router.score == "sigmoid" else _SOFTMAX,
    }


def _granite(config: ModelConfig) -> Keys:
    layer, mixer = config.layers[0], _mixer(config)
    return {
        **_shared_width(config),
        "attention.scale": mixer.scale,
        "embedding_scale": config.embedding_scale,
        "residual_scale": layer.residual,
        "logit_scale": _reciprocal(config.logits_scale),
    }


def _reciprocal(factor: float) -> float:
    """The divisor whose float32 reciprocal is `factor`: the shortest decimal where there is one."""
    divisors = (float(f"{1 / factor:.6g}"), 1 / factor)
    return next((d for d in divisors if np.float32(1 / d) == np.float32(factor)), divisors[-1])


def _gpt_oss(config: ModelConfig) -> Keys:
    windows = [layer.mixer.window for layer in config.layers if isinstance(layer.mixer, Attention)]
    window = next((w for w in windows if w is not None), None)
    if window is None:
        raise refused("a window in every other layer", "none")
    return {**_width(config), "attention.sliding_window": window}


def _minimax(config: ModelConfig) -> Keys:
    return {**_width(config), "expert_gating_func": _SIGMOID}


def _normed(config: ModelConfig, over: str) -> bool:
    mixer = _mixer(config)
    return isinstance(mixer, Attention) and mixer.qk_norm is not None and mixer.qk_norm.over == over


def _has_sinks(config: ModelConfig) -> bool:
    mixer = _mixer(config)
    return isinstance(mixer, Attention) and mixer.sinks


def _has_factors(config: ModelConfig) -> bool:
    mixer = _mixer(config)
    factors = (config.embedding_scale, config.logits_scale, config.layers[0].residual)
    return isinstance(mixer, Attention) and (
        factors != (1.0, 1.0, 1.0) or mixer.scale != float(np.float32(mixer.head_dim**-0.5))
    )


def _is_sparse(config: ModelConfig) -> bool:
    return _last(config).router is not None


def _has_shared(config: ModelConfig, *, gated: bool) -> bool:
    shared = _last(config).shared
    return shared is not None and shared.gated == gated


def _is_plain(config: ModelConfig) -> bool:
    mixer = _mixer(config)
    return isinstance(mixer, Attention) and mixer.qk_norm is None and _last(config).shared is None


def _is_qwen2(config: ModelConfig) -> bool:
    mixer = _mixer(config)
    return isinstance(mixer, Attention) and mixer.qkv_bias and not mixer.o_bias and not _is_sparse(config)


# The first that fits is taken.
WRITTEN: dict[str, Written] = {
    "deepseek2": Written(lambda c: isinstance(_mixer(c), LatentAttention), _deepseek2),
    "gpt-oss": Written(_has_sinks, _gpt_oss, own_head=True, o_bias=True),
    "hunyuan-moe": Written(
        lambda c: _normed(c, "head_after") and _is_sparse(c), lambda c: {**_width(c), **_shared_width(c)}
    ),
    "minimax-m2": Written(
        lambda c: _normed(c, "vector") and _is_sparse(c) and _router(c).correction, _minimax, own_head=True
    ),
    "olmoe": Written(lambda c: _normed(c, "vector") and _is_sparse(c), own_head=True, square=True),
    "qwen3moe": Written(lambda c: _normed(c, "head") and _is_sparse(c), _width),
    "qwen3": Written(lambda c: _normed(c, "head")),
    "qwen2moe": Written(
        lambda c: _has_shared(c, gated=True), lambda c: {**_width(c), **_shared_width(c)}, own_head=True, square=True
    ),
    "granitemoe": Written(lambda c: _is_sparse(c) and _has_factors(c), _granite, divisors=True, o_bias=True),
    "deepseek": Written(lambda c: _has_shared(c, gated=False), _after_dense, square=True),
    "qwen2": Written(lambda c: _is_plain(c) and _is_qwen2(c), square=True),
    "llama": Written(_is_plain, divisors=True, o_bias=True),
}
