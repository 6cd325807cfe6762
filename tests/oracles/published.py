# SPDX-License-Identifier: Apache-2.0
"""References for families without a class in transformers, written from their published formulas.

DeepSeekMoE (Dai et al. 2024, section 3; the gate of the published model: softmax over all experts, the k largest, no
renormalisation) and LLaMA-MoE (Zhu et al. 2024, section 3.1; two-layer tanh gate, softmax over the chosen, scores times a
factor). Both stand on transformers' Llama for everything but the feed-forward. These are independent of Colibri, and not
the authors' programs.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """``down(silu(gate x) * up x)``."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, width, bias=False)
        self.up_proj = nn.Linear(hidden, width, bias=False)
        self.down_proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class DeepseekGate(nn.Module):
    def __init__(self, axes: dict[str, Any]) -> None:
        super().__init__()
        self.k, self.normalise = axes["num_experts_per_tok"], axes["norm_topk_prob"]
        self.weight = nn.Parameter(torch.empty(axes["n_routed_experts"], axes["hidden_size"]))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        logits = functional.linear(x, self.weight)
        weights, chosen = logits.softmax(-1).topk(self.k, dim=-1)
        if self.normalise and self.k > 1:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return logits, weights, chosen


class DeepseekMoe(nn.Module):
    def __init__(self, axes: dict[str, Any]) -> None:
        super().__init__()
        hidden, width = axes["hidden_size"], axes["moe_intermediate_size"]
        self.gate = DeepseekGate(axes)
        self.experts = nn.ModuleList(Block(hidden, width) for _ in range(axes["n_routed_experts"]))
        self.shared_experts = Block(hidden, width * axes["n_shared_experts"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        _, weights, chosen = self.gate(rows)
        y = torch.stack(
            [
                sum(w * self.experts[e](r) for w, e in zip(ws, es, strict=True))
                for r, ws, es in zip(rows, weights, chosen, strict=True)
            ]
        )
        return (y + self.shared_experts(rows)).reshape(x.shape)


class TanhGate(nn.Module):
    def __init__(self, axes: dict[str, Any], layer: int) -> None:
        super().__init__()
        hidden, n_experts = axes["hidden_size"], axes["num_experts"]
        self.k, self.scale = axes["num_selects"], axes["score_scale_factor"][layer]
        self.gate_network = nn.Sequential(
            nn.Linear(hidden, n_experts, bias=False), nn.Tanh(), nn.Linear(n_experts, n_experts, bias=False)
        )
        self.weight_noise = nn.Linear(hidden, n_experts, bias=False)  # of training; stored, not used

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        logits = self.gate_network(x)
        best, chosen = logits.topk(self.k, dim=-1)
        return logits, best.softmax(-1) * self.scale, chosen


class CutExperts(nn.Module):
    def __init__(self, hidden: int, widths: list[int]) -> None:
        super().__init__()
        self.weight_gate = nn.ParameterList(nn.Parameter(torch.empty(w, hidden)) for w in widths)
        self.weight_up = nn.ParameterList(nn.Parameter(torch.empty(w, hidden)) for w in widths)
        self.weight_down = nn.ParameterList(nn.Parameter(torch.empty(hidden, w)) for w in widths)

    def forward(self, x: torch.Tensor, e: int) -> torch.Tensor:
        inner = functional.silu(functional.linear(x, self.weight_gate[e])) * functional.linear(x, self.weight_up[e])
        return functional.linear(inner, self.weight_down[e])


class LlamaMoe(nn.Module):
    def __init__(self, axes: dict[str, Any], layer: int) -> None:
        super().__init__()
        self.gate = TanhGate(axes, layer)
        self.calculator = nn.Module()
        self.calculator.experts = CutExperts(axes["hidden_size"], axes["size_experts"][layer])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        _, weights, chosen = self.gate(rows)
        experts = self.calculator.experts
        y = [
            sum(w * experts(r, int(e)) for w, e in zip(ws, es, strict=True))
            for r, ws, es in zip(rows, weights, chosen, strict=True)
        ]
        return torch.stack(y).reshape(x.shape)


ARCHITECTURES = {"deepseek": "DeepseekForCausalLM", "llama_moe": "LlamaMoEForCausalLM"}


def build(name: str, axes: dict[str, Any]) -> transformers.LlamaForCausalLM:
    """Return a Llama whose feed-forwards are the family's."""
    common = {key: value for key, value in axes.items() if key in transformers.LlamaConfig().to_dict()}
    config = transformers.LlamaConfig(**common)
    config._attn_implementation = "eager"
    model = transformers.LlamaForCausalLM(config)
    for n, layer in enumerate(model.model.layers):
        if name == "llama_moe":
            layer.mlp = LlamaMoe(axes, n)
        elif n >= axes["first_k_dense_replace"]:
            layer.mlp = DeepseekMoe(axes)
    return model


def config_json(name: str, axes: dict[str, Any]) -> dict[str, Any]:
    """Return the config.json of such a checkpoint, as its hub spells it (transformers 4)."""
    return {
        "architectures": [ARCHITECTURES[name]],
        "model_type": name,
        **axes,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "transformers_version": "4.38.0",
    }
