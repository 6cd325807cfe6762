# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts in plain PyTorch, and how it is saved for Colibri.

    python own_model.py FOLDER

writes FOLDER/model.safetensors and FOLDER/expected.json (a few ids and the logits of the last one), for own_model.toml.
A real model would be trained in between.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

VOCAB, HIDDEN, HEADS, WIDTH, EXPERTS, CHOSEN, LAYERS = 64, 36, 3, 20, 5, 2, 2


class Attention(nn.Module):
    """Causal attention with rotary positions; q, k and v come from one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False)
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend; x is [positions, HIDDEN]."""
        n, d = len(x), HIDDEN // HEADS
        q, k, v = (part.view(n, HEADS, d).transpose(0, 1) for part in self.qkv(x).chunk(3, dim=-1))
        y = functional.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        return self.out(y.transpose(0, 1).reshape(n, HIDDEN))


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Rotate adjacent pairs of each head by the position."""
    n, d = x.shape[-2:]
    angles = torch.arange(n)[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    a, b = x[..., 0::2], x[..., 1::2]
    turned = (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos())
    return torch.stack(turned, dim=-1).flatten(-2)


class Experts(nn.Module):
    """Every expert in one tensor of each kind; GELU, no gate; the weights of the chosen are renormalised."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.w_in = nn.Parameter(torch.empty(EXPERTS, HIDDEN, WIDTH))
        self.w_out = nn.Parameter(torch.empty(EXPERTS, WIDTH, HIDDEN))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Route each position to CHOSEN experts."""
        weights, chosen = self.router(x).softmax(dim=-1).topk(CHOSEN, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        y = torch.zeros_like(x)
        for slot in range(CHOSEN):
            inner = functional.gelu(torch.einsum("nh,nhw->nw", x, self.w_in[chosen[:, slot]]))
            y = y + weights[:, slot, None] * torch.einsum("nw,nwh->nh", inner, self.w_out[chosen[:, slot]])
        return y


class OwnModel(nn.Module):
    """Embedding, layers, LayerNorm before each part, head."""

    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(VOCAB, HIDDEN)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {"norm1": nn.LayerNorm(HIDDEN), "attn": Attention(), "norm2": nn.LayerNorm(HIDDEN), "moe": Experts()}
            )
            for _ in range(LAYERS)
        )
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the logits at each position."""
        x = self.tok(ids)
        for block in self.blocks:
            x = x + block["attn"](block["norm1"](x))
            x = x + block["moe"](block["norm2"](x))
        return self.head(self.norm(x))


def main(folder: Path) -> None:
    """Save a model, drawn from a fixed seed."""
    torch.manual_seed(7)
    model = OwnModel().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(
                torch.randn(parameter.shape) * (0.3 if parameter.dim() > 1 else 0.2) + (parameter.dim() == 1)
            )
        ids = torch.tensor([3, 14, 15, 9, 26, 5, 35, 8])
        logits = model(ids)[-1]
    folder.mkdir(parents=True, exist_ok=True)
    save_file(model.state_dict(), folder / "model.safetensors")
    (folder / "expected.json").write_text(json.dumps({"ids": ids.tolist(), "logits": logits.tolist()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
