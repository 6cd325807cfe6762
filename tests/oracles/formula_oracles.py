# SPDX-License-Identifier: Apache-2.0
"""The oracles of families that no framework ships: config.json of each, all in sizes that no other axis shares."""

from __future__ import annotations

from typing import Any

Axes = dict[str, Any]

BASE: Axes = {
    "vocab_size": 96,
    "hidden_size": 40,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
DEEPSPEED: Axes = {
    "model_type": "deepspeed_moe",
    "padded_vocab_size": 96,
    "hidden_size": 40,
    "num_layers": 4,
    "num_attention_heads": 4,
    "ffn_hidden_size": 28,
    "max_position_embeddings": 128,
    "layernorm_epsilon": 1e-5,
    "expert_interval": 2,
    "use_rotary_position_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
DYNAMIC: Axes = {
    **BASE,
    "model_type": "dynamic_moe",
    "architectures": ["MoEForCausalLM"],
    "num_key_value_heads": 4,
    "intermediate_size": 20,
    "hidden_act": "silu",
    "num_experts": 6,
    "expert_frequency": 2,
}

FORMULA_ORACLES: dict[str, Axes] = {
    "glam": {
        **BASE,
        "model_type": "glam",
        "intermediate_size": 24,
        "hidden_act": "gelu",
        "num_experts": 5,
        "num_experts_per_tok": 2,
        "moe_layer_interval": 2,
    },
    "deepspeed_moe": {
        **DEEPSPEED,
        "num_key_value_heads": 2,
        "num_experts": [5],
        "topk": 2,
        "qkv_layout": "per_kv_head",
        "activation": "gelu_pytorch_tanh",
        "untie_embeddings_and_output_weights": True,
    },
    "pr_moe": {
        **DEEPSPEED,
        "num_key_value_heads": 2,
        "num_experts": [3, 6],
        "topk": 1,
        "mlp_type": "residual",
    },
    "hierarchical_moe": {
        **BASE,
        "model_type": "hierarchical_moe",
        "num_hidden_layers": 2,
        "intermediate_size": 20,
        "hidden_act": "relu",
        "num_groups": 3,
        "num_experts_per_group": 4,
        "num_groups_per_tok": 2,
        "num_experts_per_group_per_tok": 2,
    },
    "dynamic_moe": {**DYNAMIC, "top_p_threshold": 0.6},
    "dynamic_moe_at_most": {**DYNAMIC, "top_p_threshold": 0.9, "num_experts_per_tok": 3},
}
