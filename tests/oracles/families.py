# SPDX-License-Identifier: Apache-2.0
"""The oracles of the other families: keys of each configuration class, chosen so that no axis has its neutral value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Axes = dict[str, Any]


@dataclass(frozen=True)
class Routing:
    """How a family's selection values come from its router's logits, for the order of experts and the margins."""

    score: Literal["raw", "softmax", "sigmoid", "sparsemixer"] = "raw"
    n_groups: int = 1
    top_groups: int = 1
    group_score: Literal["max", "top2"] = "max"
    jitter: float = 0.01


@dataclass(frozen=True)
class FamilyOracle:
    """One folder.

    config     name of the configuration class in transformers, or of a reference of published.py
    axes       its keys
    routing    None: no experts
    n_tokens   length of the sequence of ids
    positions  at how many positions answers are kept, None: at all
    dtype      of the file; the reference always computes in float32
    stored     save_pretrained options
    legacy     keys that config.json gets in the spelling of transformers 4 and of the hub; None removes a key
    seed       of the weights
    """

    config: str
    axes: Axes
    routing: Routing | None
    n_tokens: int = 24
    positions: int | None = None
    dtype: str = "float32"
    stored: Axes = field(default_factory=dict)
    legacy: Axes = field(default_factory=dict)
    seed: int = 1234


BASE: Axes = {
    "vocab_size": 96,
    "hidden_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SMALL = {"intermediate_size": 20, "num_experts_per_tok": 2}
EXPERTS = {**SMALL, "num_experts": 5}
LOCAL = {**SMALL, "num_local_experts": 5}
MLA: Axes = {
    "num_key_value_heads": 4,
    "intermediate_size": 56,
    "moe_intermediate_size": 12,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 20,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 6,
    "v_head_dim": 14,
}
LONG: Axes = {"max_position_embeddings": 640}


def yarn(factor: float, original: int, **more: Any) -> Axes:
    return {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": factor,
        "original_max_position_embeddings": original,
        **more,
    }


# These lengths and thetas put a frequency between the two bands, so that the ramp counts.
DEEPSEEK_YARN = {**yarn(10.0, 64, beta_fast=32, beta_slow=1, mscale=0.707, mscale_all_dim=0.9), "rope_theta": 100.0}
GPT_OSS: Axes = {
    **BASE,
    **LOCAL,
    "head_dim": 12,
    "sliding_window": 5,
    "rope_parameters": {
        **yarn(8.0, 400, beta_fast=32.0, beta_slow=1.0, truncate=False),
        "rope_theta": 150000.0,
    },
}
LLAMA4: Axes = {
    **BASE,
    "num_hidden_layers": 4,
    "intermediate_size": 12,
    "intermediate_size_mlp": 36,
    "num_local_experts": 5,
    "num_experts_per_tok": 1,
    "head_dim": 12,
    "interleave_moe_layer_step": 2,
    "attention_chunk_size": 7,
    "no_rope_layer_interval": 4,
    "floor_scale": 4,
    "attn_scale": 0.1,
}
AFMOE: Axes = {
    **BASE,
    "intermediate_size": 36,
    "moe_intermediate_size": 12,
    "num_experts": 6,
    "num_experts_per_tok": 3,
    "num_shared_experts": 2,
    "num_dense_layers": 1,
    "head_dim": 12,
    "sliding_window": 5,
    "global_attn_every_n_layers": 2,
    "mup_enabled": True,
    "route_scale": 1.75,
}
LLAMA_MOE: Axes = {
    **BASE,
    "num_key_value_heads": 4,
    "intermediate_size": 48,
    "num_experts": 4,
    "num_selects": 2,
    "size_experts": [[10, 12, 14, 12], [16, 8, 12, 12]],
    "gate_network": "mlp",
    "gate_use_softmax": True,
    "multiply_gate_scores": True,
    "score_scale_factor": [2.0, 3.0],
}
SOFTMAX, SIGMOID = Routing("softmax"), Routing("sigmoid")
V3_GROUPS = Routing("sigmoid", n_groups=4, top_groups=2, group_score="top2")

FAMILY_ORACLES: dict[str, FamilyOracle] = {
    "qwen2": FamilyOracle(
        "Qwen2Config",
        {**BASE, "intermediate_size": 36, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
        None,
    ),
    "qwen3": FamilyOracle(
        "Qwen3Config",
        {**BASE, "intermediate_size": 36, "head_dim": 14, "tie_word_embeddings": True, "attention_bias": True},
        None,
    ),
    "llama_bias": FamilyOracle(
        "LlamaConfig", {**BASE, "intermediate_size": 36, "attention_bias": True, "mlp_bias": True}, None
    ),
    "llama_gelu": FamilyOracle(
        "LlamaConfig", {**BASE, "intermediate_size": 36, "hidden_act": "gelu_pytorch_tanh"}, None, dtype="bfloat16"
    ),
    "qwen2_moe": FamilyOracle(
        "Qwen2MoeConfig",
        {
            **BASE,
            **EXPERTS,
            "intermediate_size": 36,
            "moe_intermediate_size": 12,
            "shared_expert_intermediate_size": 28,
            "mlp_only_layers": [0],
        },
        SOFTMAX,
    ),
    "qwen3_moe": FamilyOracle(
        "Qwen3MoeConfig",
        {
            **BASE,
            **EXPERTS,
            "moe_intermediate_size": 12,
            "head_dim": 14,
            "norm_topk_prob": True,
            "num_experts": 9,
            "num_experts_per_tok": 4,
        },
        SOFTMAX,
    ),
    "qwen3_moe_nonorm": FamilyOracle(
        "Qwen3MoeConfig",
        {**BASE, **EXPERTS, "moe_intermediate_size": 12, "head_dim": 14, "norm_topk_prob": False},
        SOFTMAX,
        dtype="float16",
        stored={"save_original_format": False},
    ),
    "olmoe": FamilyOracle("OlmoeConfig", {**BASE, **EXPERTS, "clip_qkv": 0.8}, SOFTMAX),
    "flex_olmo": FamilyOracle("FlexOlmoConfig", {**BASE, **EXPERTS}, SOFTMAX, dtype="bfloat16"),
    "deepseek": FamilyOracle(
        "published:deepseek",
        {
            **BASE,
            "num_hidden_layers": 3,
            "intermediate_size": 36,
            "moe_intermediate_size": 12,
            "n_routed_experts": 6,
            "num_experts_per_tok": 3,
            "n_shared_experts": 2,
            "first_k_dense_replace": 1,
            "norm_topk_prob": False,
        },
        SOFTMAX,
    ),
    "deepseek_v2": FamilyOracle(
        "DeepseekV2Config",
        {
            **BASE,
            **MLA,
            "n_routed_experts": 5,
            "n_shared_experts": 2,
            "q_lora_rank": None,
            "routed_scaling_factor": 1.5,
            "topk_method": "greedy",
            "rope_parameters": DEEPSEEK_YARN,
        },
        SOFTMAX,
    ),
    "deepseek_v2_groups": FamilyOracle(
        "DeepseekV2Config",
        {
            **BASE,
            **MLA,
            "n_routed_experts": 9,
            "num_experts_per_tok": 3,
            "n_shared_experts": 1,
            "q_lora_rank": 18,
            "routed_scaling_factor": 4.0,
            "topk_method": "group_limited_greedy",
            "n_group": 3,
            "topk_group": 2,
        },
        Routing("softmax", n_groups=3, top_groups=2),
        dtype="bfloat16",
    ),
    "deepseek_v3": FamilyOracle(
        "DeepseekV3Config",
        {
            **BASE,
            **MLA,
            "n_routed_experts": 12,
            "n_shared_experts": 1,
            "num_experts_per_tok": 3,
            "q_lora_rank": 18,
            "n_group": 4,
            "topk_group": 2,
            "routed_scaling_factor": 2.5,
            "num_nextn_predict_layers": 0,
            "attention_bias": True,
        },
        V3_GROUPS,
        legacy={"scoring_func": "sigmoid", "topk_method": "noaux_tc", "moe_layer_freq": 1},
    ),
    "granitemoe": FamilyOracle(
        "GraniteMoeConfig",
        {
            **BASE,
            **LOCAL,
            "embedding_multiplier": 12.0,
            "logits_scaling": 6.0,
            "residual_multiplier": 0.22,
            "attention_multiplier": 0.25,
            "tie_word_embeddings": True,
        },
        Routing(),
    ),
    "granitemoeshared": FamilyOracle(
        "GraniteMoeSharedConfig",
        {
            **BASE,
            **LOCAL,
            "embedding_multiplier": 7.0,
            "logits_scaling": 0.6,
            "residual_multiplier": 0.5,
            "attention_multiplier": 0.25,
            "tie_word_embeddings": True,
            "shared_intermediate_size": 28,
        },
        Routing(),
        dtype="bfloat16",
    ),
    "phimoe": FamilyOracle(
        "PhimoeConfig",
        {**BASE, **LOCAL, "attention_bias": True, "lm_head_bias": True, "router_jitter_noise": 0.2},
        Routing("sparsemixer", jitter=0.2),
    ),
    "phimoe_longrope": FamilyOracle(
        "PhimoeConfig",
        {
            **BASE,
            **LOCAL,
            "attention_bias": True,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0, 1.1, 1.25, 1.5, 2.0],
                "long_factor": [1.0, 2.0, 4.0, 6.0, 8.0],
                "short_mscale": 1.243,
                "long_mscale": 1.5,
                "original_max_position_embeddings": 64,
            },
        },
        Routing("sparsemixer"),
        n_tokens=64,
        positions=20,
        dtype="bfloat16",
    ),
    "gpt_oss": FamilyOracle("GptOssConfig", GPT_OSS, Routing(), n_tokens=40),
    "gpt_oss_long": FamilyOracle(
        "GptOssConfig",
        {**GPT_OSS, **LONG, "sliding_window": 31},
        Routing(),
        n_tokens=600,
        positions=24,
        dtype="bfloat16",
    ),
    "llama4": FamilyOracle("Llama4TextConfig", LLAMA4, Routing()),
    "llama4_long": FamilyOracle(
        "Llama4TextConfig",
        {**LLAMA4, **LONG, "attention_chunk_size": 61, "floor_scale": 50, "num_experts_per_tok": 2},
        Routing(),
        n_tokens=600,
        positions=24,
        dtype="bfloat16",
    ),
    "lfm2_moe": FamilyOracle(
        "Lfm2MoeConfig",
        {
            **BASE,
            **EXPERTS,
            "num_hidden_layers": 3,
            "intermediate_size": 36,
            "moe_intermediate_size": 12,
            "num_dense_layers": 1,
            "layer_types": ["conv", "full_attention", "conv"],
            "routed_scaling_factor": 1.5,
            "conv_bias": True,
        },
        SIGMOID,
    ),
    "ernie4_5_moe": FamilyOracle(
        "Ernie4_5_MoeConfig",
        {
            **BASE,
            "intermediate_size": 36,
            "moe_intermediate_size": 12,
            "moe_k": 2,
            "moe_num_experts": 5,
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": 1,
        },
        SOFTMAX,
    ),
    "glm4_moe": FamilyOracle(
        "Glm4MoeConfig",
        {
            **BASE,
            "intermediate_size": 36,
            "moe_intermediate_size": 12,
            "n_routed_experts": 8,
            "num_experts_per_tok": 3,
            "n_shared_experts": 1,
            "n_group": 4,
            "topk_group": 2,
            "head_dim": 12,
            "use_qk_norm": True,
            "attention_bias": True,
            "routed_scaling_factor": 1.5,
            "num_nextn_predict_layers": 0,
        },
        V3_GROUPS,
    ),
    "minimax_m2": FamilyOracle(
        "MiniMaxM2Config",
        {**BASE, **LOCAL, "head_dim": 12},
        SIGMOID,
        legacy={"rotary_dim": 8, "rope_parameters": None, "rope_theta": 5000000.0},
    ),
    "dbrx": FamilyOracle(
        "DbrxConfig",
        {
            "d_model": 40,
            "n_heads": 4,
            "n_layers": 2,
            "max_seq_len": 128,
            "vocab_size": 96,
            "attn_config": {"kv_n_heads": 2, "clip_qkv": 0.8, "rope_theta": 10000.0},
            "ffn_config": {
                "ffn_hidden_size": 20,
                "moe_num_experts": 5,
                "moe_top_k": 2,
                "moe_normalize_expert_weights": 2.0,
            },
            "pad_token_id": 0,
        },
        SOFTMAX,
    ),
    "jetmoe": FamilyOracle(
        "JetMoeConfig",
        {
            "vocab_size": 96,
            "hidden_size": 40,
            "num_hidden_layers": 2,
            "num_key_value_heads": 2,
            "kv_channels": 12,
            "intermediate_size": 20,
            "num_local_experts": 5,
            "num_experts_per_tok": 3,
            "max_position_embeddings": 128,
            "pad_token_id": 0,
        },
        Routing(),
    ),
    "afmoe": FamilyOracle("AfmoeConfig", AFMOE, SIGMOID),
    "afmoe_long": FamilyOracle(
        "AfmoeConfig", {**AFMOE, **LONG, "sliding_window": 31}, SIGMOID, n_tokens=600, positions=24, dtype="bfloat16"
    ),
    "hunyuan_v1_moe": FamilyOracle(
        "HunYuanMoEV1Config",
        {**BASE, "intermediate_size": 20, "num_experts": 5, "moe_topk": 2, "head_dim": 12},
        Routing(),
    ),
    "llama_moe": FamilyOracle("published:llama_moe", LLAMA_MOE, Routing()),
    "mixtral_full": FamilyOracle(  # every expert chosen
        "MixtralConfig",
        {**BASE, **LOCAL, "num_local_experts": 3, "num_experts_per_tok": 3},
        Routing(),
        dtype="bfloat16",
    ),
    "mixtral_one": FamilyOracle(  # no choice at all
        "MixtralConfig",
        {**BASE, **LOCAL, "num_local_experts": 1, "num_experts_per_tok": 1},
        Routing(),
        dtype="bfloat16",
    ),
    "deepseek_v2_long": FamilyOracle(
        "DeepseekV2Config",
        {
            **BASE,
            **MLA,
            **LONG,
            "n_routed_experts": 5,
            "n_shared_experts": 1,
            "q_lora_rank": 18,
            "rope_parameters": DEEPSEEK_YARN,
        },
        SOFTMAX,
        n_tokens=600,
        positions=24,
        dtype="bfloat16",
    ),
}
