# SPDX-License-Identifier: Apache-2.0
"""The architectures of GGUF files: each as the config.json of a family, so that a family's arithmetic is written once.

A config here has every key that its family reads: defaults of the framework's classes do not count for a GGUF file. What no
key says is the architecture's own where its published models agree (llama.cpp has it in its code); otherwise the user states it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from colibri.importers.gguf import limits
from colibri.importers.gguf.facts import Facts
from colibri.importers.limits import MAX_POSITIONS, MAX_ROW_ELEMS, MAX_SCALE, MAX_TAPS, MAX_VOCAB
from colibri.importers.overrides import LLAMA4_QK_NORM

Config = dict[str, Any]
Read = Callable[[Facts], tuple[str, Config]]
"""From facts to the name of a family and the keys that its config adds to `common`."""

_TINY = 2.0**-40
_FFN_NORM_AFTER = {"ffn_norm": "post_attention_norm"}  # it stands after the attention, hence the name


@dataclass(frozen=True)
class Architecture:
    """One architecture.

    read      see Read
    adjacent  rows of q and k are in the order of adjacent pairs (the converter put them so), whatever the family says
    names     tensors that go by another name than in gguf.tensors.NAMES
    epsilon   key of the norms' epsilon
    truncate  of yarn, in the architecture's published models
    longrope  files may have LongRoPE's two tables, of which the short one counts
    """

    read: Read
    adjacent: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    epsilon: str = "attention.layer_norm_rms_epsilon"
    truncate: bool = True
    longrope: bool = False


def _window(facts: Facts) -> int | None:
    return facts.integer("attention.sliding_window", 0, MAX_VOCAB, 0) or None


def _experts(facts: Facts, width: str = "expert_feed_forward_length") -> Config:
    return {
        "num_experts": facts.n_experts(),
        "num_experts_per_tok": facts.top_k(),
        "moe_intermediate_size": facts.width(width, "ffn_up_exps"),
    }


def _llama(facts: Facts) -> tuple[str, Config]:
    window = _window(facts)
    if facts.n_experts():
        return "mixtral", {
            "num_local_experts": facts.n_experts(),
            "num_experts_per_tok": facts.top_k(),
            "sliding_window": window,
        }
    return ("mistral", {"sliding_window": window}) if window else ("llama", {"mlp_bias": False})


def _dense(family: str) -> Read:
    return lambda _: (family, {"use_sliding_window": False, "sliding_window": None, "max_window_layers": 0})


_ALL_SPARSE: Config = {
    "decoder_sparse_step": 1,
    "mlp_only_layers": None,
    "use_sliding_window": False,
    "sliding_window": None,
}


def _qwen2moe(facts: Facts) -> tuple[str, Config]:
    shared = facts.width("expert_shared_feed_forward_length", "ffn_up_shexp")
    own = {"shared_expert_intermediate_size": shared, "qkv_bias": True, "norm_topk_prob": False, "max_window_layers": 0}
    return "qwen2_moe", {**_experts(facts), **_ALL_SPARSE, **own}


def _qwen3moe(facts: Facts) -> tuple[str, Config]:
    return "qwen3_moe", {**_experts(facts), **_ALL_SPARSE, "norm_topk_prob": True}


def _olmoe(facts: Facts) -> tuple[str, Config]:
    clip = facts.number("attention.clamp_kqv", 0.0, MAX_SCALE, 0.0) or None
    sizes = {"num_experts": facts.n_experts(), "num_experts_per_tok": facts.top_k()}
    return "olmoe", {**sizes, "norm_topk_prob": False, "clip_qkv": clip}


def _scale(facts: Facts) -> float:
    return facts.number("expert_weights_scale", 0.0, MAX_SCALE, 0.0) or 1.0


def _latent(facts: Facts) -> Config:
    rope_dim = facts.integer("rope.dimension_count", 2, MAX_ROW_ELEMS)
    key, value = ("attention.key_length_mla", "attention.value_length_mla")
    if not facts.has(key):  # files from before keys were cached as one latent
        key, value = "attention.key_length", "attention.value_length"
    return {
        "q_lora_rank": facts.integer("attention.q_lora_rank", 0, MAX_ROW_ELEMS, 0) or None,
        "kv_lora_rank": facts.integer("attention.kv_lora_rank", 1, MAX_ROW_ELEMS),
        "qk_rope_head_dim": rope_dim,
        "qk_nope_head_dim": facts.integer(key, rope_dim + 1, MAX_ROW_ELEMS) - rope_dim,
        "v_head_dim": facts.integer(value, 1, MAX_ROW_ELEMS),
        "num_key_value_heads": None,
        "head_dim": None,
        "rope_interleave": True,
    }


def _sparse_after_dense(facts: Facts) -> Config:
    """DeepSeek's layout: the first layers dense, experts and shared ones in the others."""
    n_groups, top_groups = facts.groups()
    return {
        **_experts(facts),
        "first_k_dense_replace": facts.integer("leading_dense_block_count", 0, limits.MAX_BLOCKS, 0),
        "moe_layer_freq": 1,
        "n_shared_experts": facts.integer("expert_shared_count", 0, limits.MAX_EXPERTS, 0),
        "routed_scaling_factor": _scale(facts),
        "norm_topk_prob": facts.flag("expert_weights_norm", default=False),
        "n_group": n_groups,
        "topk_group": top_groups,
        "num_nextn_predict_layers": 0,
    }


def _deepseek(facts: Facts) -> tuple[str, Config]:
    if _scale(facts) != 1.0:
        raise facts.error("expert_weights_scale", "1, as this architecture has")
    own = {"norm_topk_prob": False, "scoring_func": "softmax"}
    return "deepseek", {**_sparse_after_dense(facts), **own}


def _deepseek2(facts: Facts) -> tuple[str, Config]:
    config = {**_latent(facts), **_sparse_after_dense(facts)}
    score = facts.gating()
    if score is None and facts.is_there("exp_probs_b.bias"):
        score = facts.required(
            "router.score", "softmax|sigmoid", "the router has a correction, as DeepSeek-V3's sigmoid has"
        )
    if score == "sigmoid":
        return "deepseek_v3", {**config, "scoring_func": "sigmoid", "topk_method": "noaux_tc"}
    method = "greedy"
    if config["n_group"] > config["topk_group"]:
        facts.required("router.group_score", "max|top2", "how a group of experts is rated")
        method = "group_limited_greedy"
    return "deepseek_v2", {**config, "scoring_func": "softmax", "topk_method": method}


def _granite(facts: Facts) -> tuple[str, Config]:
    config: Config = {
        "num_local_experts": facts.n_experts(),
        "num_experts_per_tok": facts.top_k(),
        "attention_multiplier": facts.number("attention.scale", _TINY, MAX_SCALE),
        "embedding_multiplier": facts.number("embedding_scale", _TINY, MAX_SCALE),
        "residual_multiplier": facts.number("residual_scale", _TINY, MAX_SCALE),
        "logits_scaling": facts.number("logit_scale", _TINY, MAX_SCALE),
    }
    if not facts.is_there("ffn_up_shexp.weight"):
        return "granitemoe", config
    return "granitemoeshared", {
        **config,
        "shared_intermediate_size": facts.width("expert_shared_feed_forward_length", "ffn_up_shexp"),
    }


def _gpt_oss(facts: Facts) -> tuple[str, Config]:
    sizes = {"num_local_experts": facts.n_experts(), "num_experts_per_tok": facts.top_k()}
    fixed = {"swiglu_limit": 7.0, "swiglu_alpha": 1.702, "attention_bias": True}
    width = facts.width("expert_feed_forward_length", "ffn_up_exps")
    window = facts.integer("attention.sliding_window", 1, MAX_VOCAB)
    return "gpt_oss", {**sizes, **fixed, "intermediate_size": width, "sliding_window": window}


def _llama4(facts: Facts) -> tuple[str, Config]:
    if facts.has("attention.sliding_window"):
        raise facts.error("attention.sliding_window", "no such key, as in the published models", "one")
    n_experts = facts.n_experts()
    known = {16: True, 128: False}.get(n_experts)  # Scout, Maverick
    return "llama4_text", {
        "num_local_experts": n_experts,
        "num_experts_per_tok": facts.top_k(),
        "intermediate_size_mlp": facts.width("feed_forward_length", "ffn_up"),
        "intermediate_size": facts.width("expert_feed_forward_length", "ffn_up_exps"),
        "interleave_moe_layer_step": facts.integer("interleave_moe_layer_step", 1, limits.MAX_BLOCKS),
        "moe_layers": None,
        "use_qk_norm": facts.choice(LLAMA4_QK_NORM, known, "Scout's layers have it, Maverick's do not"),
        "no_rope_layers": None,
        "no_rope_layer_interval": 4,
        "attention_chunk_size": 8192,
        "attn_temperature_tuning": True,
        "floor_scale": 8192,
        "attn_scale": 0.1,
    }


def _only_sigmoid(facts: Facts) -> None:
    if facts.gating() not in (None, "sigmoid"):
        raise facts.error("expert_gating_func", "2 (sigmoid), as this architecture has")


def _lfm2moe(facts: Facts) -> tuple[str, Config]:
    heads = facts.metadata.integers(facts.key("attention.head_count_kv"), 0, MAX_ROW_ELEMS)
    n_layers, _ = facts.n_blocks()
    if len(heads) != n_layers or len(set(heads) - {0}) != 1:
        raise facts.error("attention.head_count_kv", f"{n_layers} numbers, one a layer, 0 where it is a convolution")
    _only_sigmoid(facts)
    return "lfm2_moe", {
        **_experts(facts),
        "num_key_value_heads": max(heads),
        "layer_types": ["full_attention" if n else "conv" for n in heads],
        "num_dense_layers": facts.integer("leading_dense_block_count", 0, limits.MAX_BLOCKS, 0),
        "conv_L_cache": facts.integer("shortconv.l_cache", 1, MAX_TAPS),
        "conv_bias": False,
        "use_expert_bias": facts.is_there("exp_probs_b.bias"),
        "norm_topk_prob": True,
        "routed_scaling_factor": _scale(facts),
    }


def _ernie(facts: Facts) -> tuple[str, Config]:
    # Its key for the shared experts' width is wrong in llama.cpp's files: the count and the tensors say it.
    sizes = _experts(facts)
    return "ernie4_5_moe", {
        **sizes,
        "moe_k": sizes["num_experts_per_tok"],
        "moe_num_experts": sizes["num_experts"],
        "moe_num_shared_experts": facts.integer("expert_shared_count", 0, limits.MAX_EXPERTS, 0),
        "moe_layer_start_index": facts.integer("leading_dense_block_count", 0, limits.MAX_BLOCKS, 0),
        "moe_layer_end_index": -1,
        "moe_layer_interval": facts.integer("interleave_moe_layer_step", 1, limits.MAX_BLOCKS, 1),
        "moe_norm_min": 1e-12,
        "use_bias": False,
    }


def _glm4moe(facts: Facts) -> tuple[str, Config]:
    _only_sigmoid(facts)
    return "glm4_moe", {**_sparse_after_dense(facts), "use_qk_norm": facts.is_there("attn_q_norm.weight")}


def _afmoe(facts: Facts) -> tuple[str, Config]:
    _only_sigmoid(facts)
    if not facts.flag("expert_weights_norm", default=False):
        facts.required(
            "router.renormalise", "true|false", "only true is written, and an older config.json leaves it out"
        )
    return "afmoe", {
        **_experts(facts),
        "num_shared_experts": facts.integer("expert_shared_count", 0, limits.MAX_EXPERTS, 0),
        "num_dense_layers": facts.integer("leading_dense_block_count", 0, limits.MAX_BLOCKS, 0),
        "route_scale": _scale(facts),
        "global_attn_every_n_layers": 4,
        "sliding_window": facts.integer("attention.sliding_window", 1, MAX_VOCAB),
        "mup_enabled": True,
    }


def _minimax(facts: Facts) -> tuple[str, Config]:
    _only_sigmoid(facts)
    return "minimax_m2", {
        "num_local_experts": facts.n_experts(),
        "num_experts_per_tok": facts.top_k(),
        "intermediate_size": facts.width("expert_feed_forward_length", "ffn_up_exps"),
    }


def _hunyuan(facts: Facts) -> tuple[str, Config]:
    sizes = _experts(facts)
    width = sizes.pop("moe_intermediate_size")
    if facts.width("expert_shared_feed_forward_length", "ffn_up_shexp") != width:
        raise facts.error("expert_shared_feed_forward_length", f"{width}, as an expert has")
    if facts.integer("expert_shared_count", 1, limits.MAX_EXPERTS, 1) != 1:
        raise facts.error("expert_shared_count", "1, as this architecture has")
    return "hunyuan_v1_moe", {**sizes, "intermediate_size": width}


def _phimoe(facts: Facts) -> tuple[str, Config]:
    # llama.cpp runs these files with norms and a router of another kind; here they are what they were converted from.
    return "phimoe", {
        "num_local_experts": facts.n_experts(),
        "num_experts_per_tok": facts.top_k(),
        "sliding_window": _window(facts),
        "router_jitter_noise": 0.01,
        "lm_head_bias": "output.bias" in facts.sources,
    }


def _dbrx(facts: Facts) -> tuple[str, Config]:
    clip = facts.number("attention.clamp_kqv", 0.0, MAX_SCALE, 0.0) or None
    kv_heads = facts.integer("attention.head_count_kv", 1, MAX_ROW_ELEMS)
    return "dbrx", {
        "d_model": facts.integer("embedding_length", 1, MAX_ROW_ELEMS),
        "n_heads": facts.integer("attention.head_count", 1, MAX_ROW_ELEMS),
        "n_layers": facts.n_blocks()[0],
        "max_seq_len": facts.integer("context_length", 1, MAX_POSITIONS),
        "attn_config": {"kv_n_heads": kv_heads, "clip_qkv": clip},
        "ffn_config": {
            "ffn_hidden_size": facts.width("feed_forward_length", "ffn_up_exps"),
            "moe_num_experts": facts.n_experts(),
            "moe_top_k": facts.top_k(),
            "moe_normalize_expert_weights": 1.0,
        },
    }


ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture(_llama, adjacent=True),
    "qwen2": Architecture(_dense("qwen2")),
    "qwen3": Architecture(_dense("qwen3")),
    "qwen2moe": Architecture(_qwen2moe),
    "qwen3moe": Architecture(_qwen3moe),
    "olmoe": Architecture(_olmoe),
    "deepseek": Architecture(_deepseek, adjacent=True),
    "deepseek2": Architecture(_deepseek2, adjacent=True),
    "granitemoe": Architecture(_granite, adjacent=True),
    "gpt-oss": Architecture(_gpt_oss, names=_FFN_NORM_AFTER, truncate=False),
    "llama4": Architecture(_llama4, adjacent=True),
    "lfm2moe": Architecture(_lfm2moe, names={"final_norm": "token_embd_norm"}),
    "ernie4_5-moe": Architecture(_ernie, adjacent=True),
    "glm4moe": Architecture(_glm4moe, names=_FFN_NORM_AFTER),
    "minimax-m2": Architecture(_minimax),
    "afmoe": Architecture(_afmoe),
    "hunyuan-moe": Architecture(_hunyuan),
    "phimoe": Architecture(_phimoe, longrope=True),
    "dbrx": Architecture(_dbrx, names={"ffn_norm": "attn_output_norm"}, epsilon="attention.layer_norm_epsilon"),
}
