# SPDX-License-Identifier: Apache-2.0
"""References for families that no framework ships, from their papers, in plain PyTorch; float64, of float32 weights.

GLaM                Du et al. 2021, section 4: experts in every other layer, two of them, their outputs' weighted average; in the
                    other layers a gated GELU
DeepSpeed-MoE       Rajbhandari et al. 2022, section 4: one or two experts by the softmax of all; PR-MoE: a fixed MLP and one
                    expert, more experts in later layers. The two are mixed by a softmax, as DeepSpeed's own layer does it
Hierarchical MoE    Shazeer et al. 2017, appendix B: the gates of both levels keep their best logits, their values multiply
dynamic top-k       Huang et al. 2024, section 3: the fewest experts whose probabilities sum to p, weighted by them

    python tests/oracles/make_formulas.py [NAME ...]
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from formula_oracles import FORMULA_ORACLES
from safetensors.torch import save_file
from torch.nn import functional

DATA = Path(__file__).parent / "data"
SEED, N_TOKENS = 1234, 24
MIN_MARGIN = 1e-3  # of a choice: between the last expert chosen and the first one not, between a sum and p
MIN_ORDER = 1e-4
Axes = dict[str, Any]
ACT = {
    "gelu": functional.gelu,
    "gelu_pytorch_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "relu": functional.relu,
    "silu": functional.silu,
}


class Weights(dict[str, torch.Tensor]):
    """Tensors drawn when first asked for: norms around 1, biases of a fifth, matrices that keep a vector's length."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(SEED)

    def get_(self, name: str, *shape: int) -> torch.Tensor:
        if name not in self:
            r = torch.randn(shape, generator=self.generator, dtype=torch.float32)
            if name.endswith("bias"):
                r = 0.2 * r
            elif len(shape) == 1:
                r = 1 + 0.2 * r
            else:
                r = r * shape[-1] ** -0.5 * (2 if "gate.wg" in name or "router" in name or "mlp.gate." in name else 1)
            self[name] = r
        return self[name].double()


class Model:
    """A decoder: what a family is, is in `parts` and in a function for its feed-forward."""

    def __init__(self, axes: Axes) -> None:
        self.axes, self.w = axes, Weights()
        self.hidden = axes["hidden_size"]
        self.n_layers = axes.get("num_hidden_layers") or axes["num_layers"]
        self.is_megatron = axes["model_type"] == "deepspeed_moe"
        self.chosen: dict[int, np.ndarray] = {}
        self.margins: list[np.ndarray] = []
        self.orders: list[np.ndarray] = []

    def linear(self, name: str, x: torch.Tensor, n_out: int) -> torch.Tensor:
        y = x @ self.w.get_(f"{name}.weight", n_out, x.shape[-1]).T
        return y + self.w.get_(f"{name}.bias", n_out) if self.is_megatron else y

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        weight = self.w.get_(f"{name}.weight", self.hidden)
        if self.is_megatron:
            bias = self.w.get_(f"{name}.bias", self.hidden)
            return functional.layer_norm(x, (self.hidden,), weight, bias, self.axes["layernorm_epsilon"])
        return functional.rms_norm(x, (self.hidden,), weight, self.axes["rms_norm_eps"])

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        self.chosen, self.margins, self.orders = {}, [], []
        names = NAMES["deepspeed_moe" if self.is_megatron else self.axes["model_type"]]
        vocab = self.axes.get("vocab_size") or self.axes["padded_vocab_size"]
        x = self.w.get_(names["embed"], vocab, self.hidden)[ids]
        for n in range(self.n_layers):
            layer = f"{names['layers']}.{n}"
            x = x + self.attention(f"{layer}.{names['attention']}", self.norm(f"{layer}.{names['first']}", x))
            x = x + FFN[self.axes["model_type"]](self, n, f"{layer}.mlp", self.norm(f"{layer}.{names['second']}", x))
        x = self.norm(names["final"], x)
        tied = self.is_megatron and not self.axes.get("untie_embeddings_and_output_weights", False)
        return x @ self.w.get_(names["embed" if tied else "head"], vocab, self.hidden).T

    # --- attention

    def attention(self, name: str, x: torch.Tensor) -> torch.Tensor:
        heads = self.axes["num_attention_heads"]
        kv, d = self.axes.get("num_key_value_heads", heads), self.hidden // heads
        if self.is_megatron:
            q, k, v = self.fused(self.linear(f"{name}.query_key_value", x, (heads + 2 * kv) * d), heads, kv, d)
        else:
            q, k, v = (
                self.linear(f"{name}.{part}_proj", x, n * d).view(len(x), n, d)
                for part, n in (("q", heads), ("k", kv), ("v", kv))
            )
        q, k = rotated(q, self.axes.get("rope_theta", 10000.0)), rotated(k, self.axes.get("rope_theta", 10000.0))
        k, v = k.repeat_interleave(heads // kv, 1), v.repeat_interleave(heads // kv, 1)
        scores = torch.einsum("thd,shd->hts", q, k) / d**0.5
        future = torch.ones(len(x), len(x)).triu(1).bool()
        o = torch.einsum("hts,shd->thd", scores.masked_fill(future, -torch.inf).softmax(-1), v).reshape(len(x), -1)
        return self.linear(f"{name}.{'dense' if self.is_megatron else 'o_proj'}", o, self.hidden)

    def fused(self, x: torch.Tensor, heads: int, kv: int, d: int) -> tuple[torch.Tensor, ...]:
        if self.axes.get("qkv_layout", "contiguous") == "contiguous":
            q, k, v = x.split([heads * d, kv * d, kv * d], -1)
            return q.view(-1, heads, d), k.view(-1, kv, d), v.view(-1, kv, d)
        by_head = x.view(len(x), kv, heads // kv + 2, d)
        return by_head[:, :, :-2].reshape(len(x), heads, d), by_head[:, :, -2], by_head[:, :, -1]

    # --- feed-forwards

    def llama_block(self, name: str, x: torch.Tensor, *, gated: bool) -> torch.Tensor:
        width, act = self.axes["intermediate_size"], ACT[self.axes["hidden_act"]]
        up = self.linear(f"{name}.up_proj", x, width)
        h = act(self.linear(f"{name}.gate_proj", x, width)) * up if gated else act(up)
        return self.linear(f"{name}.down_proj", h, self.hidden)

    def megatron_block(self, name: str, x: torch.Tensor) -> torch.Tensor:
        h = ACT[self.axes.get("activation", "gelu")](
            self.linear(f"{name}.dense_h_to_4h", x, self.axes["ffn_hidden_size"])
        )
        return self.linear(f"{name}.dense_4h_to_h", h, self.hidden)

    def ranked(self, p: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The k largest; how far from another choice or order they are is kept."""
        best, order = torch.sort(p, dim=-1, descending=True, stable=True)
        gaps = (best[..., :-1] - best[..., 1:]).detach().numpy().reshape(-1, p.shape[-1] - 1)
        if k < p.shape[-1]:
            self.margins.append(gaps[:, k - 1].reshape(len(p), -1).min(-1))
        if k > 1:
            self.orders.append(gaps[:, : k - 1].reshape(len(p), -1).min(-1))
        return best[..., :k], order[..., :k]

    def glam(self, n: int, name: str, x: torch.Tensor) -> torch.Tensor:
        if n % self.axes["moe_layer_interval"]:
            return self.llama_block(name, x, gated=True)
        gate = (x @ self.w.get_(f"{name}.gate.weight", self.axes["num_experts"], self.hidden).T).softmax(-1)
        p, chosen = self.ranked(gate, self.axes["num_experts_per_tok"])
        self.chosen[n] = chosen.numpy()
        w = p / p.sum(-1, keepdim=True)
        return by_token(x, chosen, w, lambda e, row: self.llama_block(f"{name}.experts.{e}", row, gated=False))

    def deepspeed(self, n: int, name: str, x: torch.Tensor) -> torch.Tensor:
        if (n + 1) % self.axes["expert_interval"]:
            return self.megatron_block(name, x)
        listed = self.axes["num_experts"]
        n_experts = listed[0] if len(listed) == 1 else listed[n // self.axes["expert_interval"]]
        gate = (x @ self.w.get_(f"{name}.deepspeed_moe.gate.wg.weight", n_experts, self.hidden).T).softmax(-1)
        p, chosen = self.ranked(gate, self.axes["topk"])
        self.chosen[n] = chosen.numpy()
        w = p if self.axes["topk"] == 1 else p / p.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).eps)
        experts = f"{name}.deepspeed_moe.experts.deepspeed_experts"
        y = by_token(x, chosen, w, lambda e, row: self.megatron_block(f"{experts}.{e}", row))
        if self.axes.get("mlp_type", "standard") == "standard":
            return y
        mix = self.linear(f"{name}.coefficient", x, 2).softmax(-1)
        return y * mix[:, :1] + self.megatron_block(f"{name}.mlp", x) * mix[:, 1:]

    def hierarchical(self, n: int, name: str, x: torch.Tensor) -> torch.Tensor:
        a = self.axes
        groups, size = a["num_groups"], a["num_experts_per_group"]
        primary = x @ self.w.get_(f"{name}.gate.primary.weight", groups, self.hidden).T
        secondary = (x @ self.w.get_(f"{name}.gate.secondary.weight", groups * size, self.hidden).T).view(
            -1, groups, size
        )
        outer, group = self.ranked(primary, a["num_groups_per_tok"])
        kept = torch.take_along_dim(secondary, group[:, :, None], 1)
        inner, expert = self.ranked(kept, a["num_experts_per_group_per_tok"])
        w = (outer.softmax(-1)[:, :, None] * inner.softmax(-1)).flatten(1)
        chosen = (group[:, :, None] * size + expert).flatten(1)
        self.chosen[n] = chosen.numpy()
        return by_token(x, chosen, w, lambda e, row: self.llama_block(f"{name}.experts.{e}", row, gated=False))

    def dynamic(self, n: int, name: str, x: torch.Tensor) -> torch.Tensor:
        if n % self.axes["expert_frequency"]:
            return self.llama_block(f"{name}.mlp", x, gated=True)
        n_experts, p = self.axes["num_experts"], self.axes["top_p_threshold"]
        at_most = self.axes.get("num_experts_per_tok") or n_experts
        gate = (x @ self.w.get_(f"{name}.router.weight", n_experts, self.hidden).T).softmax(-1)
        w, chosen = self.ranked(gate, at_most)
        sums = w.cumsum(-1)
        self.margins.append((sums - p).abs().min(-1).values.numpy())
        idle = torch.cat([torch.zeros_like(sums[:, :1]).bool(), sums[:, :-1] >= p], -1)
        chosen, w = chosen.masked_fill(idle, -1), w.masked_fill(idle, 0.0)
        self.chosen[n] = chosen.numpy()
        return by_token(x, chosen, w, lambda e, row: self.llama_block(f"{name}.experts.{e}", row, gated=True))


LLAMA = {
    "embed": "model.embed_tokens.weight",
    "layers": "model.layers",
    "attention": "self_attn",
    "first": "input_layernorm",
    "second": "post_attention_layernorm",
    "final": "model.norm",
    "head": "lm_head.weight",
}
NAMES = {
    "glam": LLAMA,
    "hierarchical_moe": LLAMA,
    "dynamic_moe": {**LLAMA, "first": "input_norm", "second": "post_attention_norm"},
    "deepspeed_moe": {
        "embed": "language_model.embedding.word_embeddings.weight",
        "layers": "language_model.encoder.layers",
        "attention": "self_attention",
        "first": "input_layernorm",
        "second": "post_attention_layernorm",
        "final": "language_model.encoder.final_layernorm",
        "head": "language_model.output_layer.weight",
    },
}
FFN = {
    "glam": Model.glam,
    "deepspeed_moe": Model.deepspeed,
    "hierarchical_moe": Model.hierarchical,
    "dynamic_moe": Model.dynamic,
}


def rotated(x: torch.Tensor, theta: float) -> torch.Tensor:
    """x [T, heads, d] turned by its position, element i with i + d / 2."""
    half = x.shape[-1] // 2
    inv_freq = (1.0 / theta ** (torch.arange(0, 2 * half, 2).float() / (2 * half))).double()
    angle = (torch.arange(len(x)).double()[:, None] * inv_freq)[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def by_token(x: torch.Tensor, chosen: torch.Tensor, w: torch.Tensor, expert: Any) -> torch.Tensor:
    """The weighted sum of each token's experts; -1: none."""
    return torch.stack(
        [
            sum(
                (w[t, j] * expert(int(e), x[t : t + 1])[0] for j, e in enumerate(es) if e >= 0), torch.zeros(x.shape[1])
            )
            for t, es in enumerate(chosen)
        ]
    )


def touch(model: Model) -> None:
    """Draw what no token of the prompt has asked for: every expert's tensors."""
    for n, chosen in model.chosen.items():
        name = next(k for k in model.w if f"layers.{n}.mlp" in k and "experts." in k).split("experts.")[0]
        listed = model.axes.get("num_experts") or model.axes["num_groups"] * model.axes["num_experts_per_group"]
        n_experts = listed if isinstance(listed, int) else listed[0] if len(listed) == 1 else listed[n // 2]
        stem = f"{name}experts.deepspeed_experts" if model.is_megatron else f"{name}experts"
        for e in range(n_experts):
            x = torch.zeros(1, model.hidden).double()
            if model.is_megatron:
                model.megatron_block(f"{stem}.{e}", x)
            else:
                model.llama_block(f"{stem}.{e}", x, gated=model.axes["model_type"] == "dynamic_moe")
        assert chosen.max() < n_experts


def make(name: str) -> None:
    """Write data/NAME."""
    folder, axes = DATA / name, FORMULA_ORACLES[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = Model(axes)
    rng = np.random.default_rng(SEED)
    ids = np.concatenate([[1], rng.integers(3, 96, N_TOKENS - 1)])
    while True:
        logits = model.logits(torch.from_numpy(ids)).numpy()
        touch(model)
        margin, order = (
            np.min(found, axis=0) if found else np.ones(N_TOKENS) for found in (model.margins, model.orders)
        )
        doubtful = np.flatnonzero((margin <= MIN_MARGIN) | (order <= MIN_ORDER))
        if not len(doubtful):
            break
        ids[doubtful[0]] = rng.integers(3, 96)
    most = max(chosen.shape[1] for chosen in model.chosen.values())
    experts = np.full((N_TOKENS, model.n_layers, most), -1, dtype=np.int16)
    for n, chosen in model.chosen.items():
        experts[:, n, : chosen.shape[1]] = chosen
    np.savez_compressed(
        folder / "golden.npz",
        ids=ids.astype(np.int32),
        positions=np.arange(N_TOKENS, dtype=np.int32),
        logits=logits.astype(np.float32),
        experts=experts,
        margin=np.float32(margin.min()),
    )
    save_file(dict(model.w), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(axes, indent=2) + "\n")
    print(
        f"{name:20} margin {margin.min():.1e} logits std {logits.std():.2f}, {(experts >= 0).sum() / N_TOKENS:.1f} experts"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    for wanted in sys.argv[1:] or FORMULA_ORACLES:
        make(wanted)
