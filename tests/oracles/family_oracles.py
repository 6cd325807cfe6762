# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and answers of families.py: what make_oracles.py writes for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import published
import torch
import transformers
from families import FamilyOracle, Routing
from safetensors.torch import load_file, save_file
from torch import nn

MIN_CHOICE_MARGIN = 1e-3  # between the last expert (or group) chosen and the first one not
MIN_ORDER_MARGIN = 1e-4  # between two chosen ones: their outputs are summed in that order


def redraw(model: nn.Module, seed: int) -> None:
    """Draw every parameter and every bias buffer anew; router rows are doubled so that the choice of experts is clear."""
    generator = torch.Generator().manual_seed(seed)
    seen: set[int] = set()
    named = [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if "bias" in n)]
    with torch.no_grad():
        for name, parameter in named:
            if parameter.data_ptr() in seen:  # a tied head is the embedding
                continue
            seen.add(parameter.data_ptr())
            r = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            if "e_score" in name or "expert_bias" in name:
                r = 0.15 * r  # reorders experts, and does not decide alone
            elif parameter.dim() == 1:
                r = 1.0 + 0.2 * r if "norm" in name and name.endswith("weight") else 0.2 * r
            else:
                is_router = any(part in name for part in ("gate.weight", "router", ".wg.", "gate_network"))
                fan_in = (
                    parameter.shape[-2]
                    if name.endswith(("experts.gate_up_proj", "experts.down_proj"))
                    else parameter.shape[-1]
                )
                r = r * fan_in**-0.5 * (2.0 if is_router else 1.0)
            parameter.copy_(r.to(parameter.dtype))


def build(oracle: FamilyOracle) -> nn.Module:
    """Return the reference's model, freshly drawn."""
    source, _, name = oracle.config.rpartition(":")
    if source:
        model: nn.Module = published.build(name, oracle.axes)
    else:
        config = getattr(transformers, name)(**oracle.axes)
        config._attn_implementation = "eager"
        model = transformers.AutoModelForCausalLM.from_config(config)
    model = model.eval().to(torch.float32)
    redraw(model, oracle.seed)
    return model


def write(oracle: FamilyOracle, folder: Path) -> None:
    """Save config.json and the tensors."""
    model = build(oracle).to(getattr(torch, oracle.dtype))
    source, _, name = oracle.config.rpartition(":")
    if source:
        save_file(dict(model.state_dict()), folder / "model.safetensors", metadata={"format": "pt"})
        stored = published.config_json(name, oracle.axes)
    else:
        model.save_pretrained(folder, **oracle.stored)
        (folder / "generation_config.json").unlink(missing_ok=True)
        stored = json.loads((folder / "config.json").read_text())
    for key, value in oracle.legacy.items():
        stored[key] = value
        if value is None:
            del stored[key]
    (folder / "config.json").write_text(json.dumps(stored, indent=2) + "\n")


class Reference:
    """A folder's model in float32, with its routers' answers recorded."""

    def __init__(self, oracle: FamilyOracle, folder: Path) -> None:
        self.oracle = oracle
        source, _, name = oracle.config.rpartition(":")
        if source:
            self.model: Any = published.build(name, oracle.axes).eval()
            stored = load_file(folder / "model.safetensors")
            self.model.load_state_dict({key: value.float() for key, value in stored.items()})
        else:
            self.model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation="eager"
            ).eval()
            if hasattr(self.model, "set_experts_implementation"):
                self.model.set_experts_implementation("eager")
        self.routed: dict[str, tuple[np.ndarray, np.ndarray | None]] = {}
        for path, module in self.model.named_modules():
            if path.rsplit(".", 1)[-1] in ("gate", "router") and "experts.gate" not in path:
                module.register_forward_hook(lambda _m, _i, out, path=path: self._record(path, out))

    def _record(self, path: str, output: Any) -> None:
        """Keep a router's logits and, where it says them, the experts it chose."""
        parts = [
            t.detach() for t in (output if isinstance(output, tuple) else (output,)) if isinstance(t, torch.Tensor)
        ]
        chosen = None
        if len(parts) == 3 and parts[2].dim() == 2:  # logits, weights, experts
            logits, chosen = parts[0], parts[2].numpy().copy()
        else:  # DBRX: logits; Llama 4 and JetMoE: logits last
            logits = parts[-1]
        if logits.dim() == 2 and not path.endswith("router.gate"):  # AfMoE's inner matrix
            self.routed[path] = (logits.numpy().astype(np.float32).copy(), chosen)

    def answer(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """Logits at each position, router logits and experts in each layer."""
        self.routed.clear()
        with torch.no_grad():
            logits = self.model(input_ids=torch.from_numpy(ids)[None], use_cache=False).logits[0]
        golden = {
            "ids": ids.astype(np.int32),
            "positions": np.arange(len(ids), dtype=np.int32),
            "logits": logits.numpy().astype(np.float32),
        }
        rotary = [m.inv_freq for _, m in self.model.named_modules() if hasattr(m, "original_inv_freq")]
        golden["inv_freq"] = rotary[0].numpy().astype(np.float32)
        return golden

    def experts(self, attention: bool) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """By layer: experts in order of selection [T, k], and the smallest gaps at the edge of the choice and within it [T]."""
        found = {}
        for path, (z, said) in self.routed.items():
            if ("attention" in path) != attention:
                continue
            layer = int(next(part for part in path.split(".") if part.isdecimal()))
            chosen, edge, within = select(self._oracle_routing(), z, self._correction(path), self.top_k)
            assert said is None or np.array_equal(np.sort(said, axis=-1), np.sort(chosen, axis=-1)), path
            found[layer] = (chosen, edge, within)
        return found

    @property
    def top_k(self) -> int:
        axes = {**self.oracle.axes, **self.oracle.axes.get("ffn_config", {})}
        return next(
            axes[key] for key in ("num_experts_per_tok", "moe_k", "moe_topk", "moe_top_k", "num_selects") if key in axes
        )

    def _oracle_routing(self) -> Routing:
        assert self.oracle.routing is not None
        return self.oracle.routing

    def _correction(self, path: str) -> np.ndarray | None:
        layer = path.rsplit(".", 1)[0]
        tensors = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        names = [n for n in tensors if n.startswith(layer + ".") and ("e_score" in n or "expert_bias" in n)]
        return tensors[names[0]].detach().numpy().ravel().astype(np.float64) if names else None


def select(
    routing: Routing, z: np.ndarray, correction: np.ndarray | None, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose experts from router logits [T, E] in float64, written apart from the framework's own code.

    Returns the experts in order of selection, and how far each token's choice and order are from being another.
    """
    z = z.astype(np.float64)
    if routing.score == "sparsemixer":
        return _sparsemixer(z, routing.jitter)
    if routing.score == "softmax":
        e = np.exp(z - z.max(axis=-1, keepdims=True))
        c = e / e.sum(axis=-1, keepdims=True)
    else:
        c = 1 / (1 + np.exp(-z)) if routing.score == "sigmoid" else z.copy()
    if correction is not None:
        c = c + correction
    edge = np.full(len(c), np.inf)
    if routing.top_groups < routing.n_groups:
        groups = -np.sort(-c.reshape(len(c), routing.n_groups, -1), axis=-1)
        value = groups[..., 0] if routing.group_score == "max" else groups[..., 0] + groups[..., 1]
        order = np.argsort(-value, axis=-1, kind="stable")
        best = -np.sort(-value, axis=-1)
        edge = best[:, routing.top_groups - 1] - best[:, routing.top_groups]
        keep = np.zeros_like(value, dtype=bool)
        np.put_along_axis(keep, order[:, : routing.top_groups], True, axis=-1)
        c = np.where(np.repeat(keep, c.shape[1] // routing.n_groups, axis=-1), c, -np.inf)
    chosen = np.argsort(-c, axis=-1, kind="stable")[:, :k]
    best = -np.sort(-c, axis=-1)
    gaps = best[:, :-1] - best[:, 1:]
    if k < c.shape[1]:
        edge = np.minimum(edge, gaps[:, k - 1])
    within = gaps[:, : k - 1].min(axis=-1) if k > 1 else np.full(len(c), np.inf)
    return chosen, edge, within


def _sparsemixer(z: np.ndarray, jitter: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cut, rows, chosen = z.copy(), np.arange(len(z)), []
    edge = np.full(len(z), np.inf)
    for _ in range(2):
        best = -np.sort(-cut, axis=-1)
        edge = np.minimum(edge, best[:, 0] - best[:, 1])
        # Whether an expert is near enough to take part is a choice too.
        distance = (best[:, :1] - z) / np.maximum(np.abs(z), best[:, :1])
        threshold = np.where(np.isfinite(cut), np.abs(distance - 2 * jitter), np.inf)
        edge = np.minimum(edge, threshold.min(axis=-1))
        pick = cut.argmax(axis=-1)
        chosen.append(pick)
        cut[rows, pick] = -np.inf
    return np.stack(chosen, axis=-1), edge, np.full(len(z), np.inf)


def answers(oracle: FamilyOracle, folder: Path, seed: int) -> dict[str, np.ndarray]:
    """Random ids whose routing is beyond doubt, and the answers to them.

    An id is redrawn where its position is too close a call; the model is causal, so those before it stay as they are.
    """
    reference = Reference(oracle, folder)
    rng = np.random.default_rng(seed)
    vocab = oracle.axes["vocab_size"]
    ids = np.concatenate([[1], rng.integers(3, vocab, oracle.n_tokens - 1)])
    while True:
        golden = reference.answer(ids)
        if oracle.routing is None:
            return golden
        found = [*reference.experts(False).values(), *reference.experts(True).values()]
        edge = np.min([e for _, e, _ in found], axis=0)
        within = np.min([w for _, _, w in found], axis=0)
        doubtful = np.flatnonzero((edge <= MIN_CHOICE_MARGIN) | (within <= MIN_ORDER_MARGIN))
        if not len(doubtful):
            break
        ids[doubtful[0]] = rng.integers(3, vocab)
    n_layers = len(getattr(reference.model, "transformer", reference.model).blocks) if "dbrx" in folder.name else None
    n_layers = n_layers or len(reference.model.model.layers)
    for key, attention in (("experts", False), ("attn_experts", True)):
        layers = reference.experts(attention)
        if layers:
            none = np.full((len(ids), reference.top_k), -1)
            chosen = [layers[n][0] if n in layers else none for n in range(n_layers)]
            golden[key] = np.stack(chosen, axis=1).astype(np.int16)
    golden["margin"] = np.float32(edge.min())
    return golden
