# SPDX-License-Identifier: Apache-2.0
"""Write the tiny checkpoints under data/ and what the reference framework answers for them.

    python tests/oracles/make_oracles.py [NAME ...]

Needs torch and transformers (versions in README.md); nothing else in this repository does. Each oracle is a
random-initialised model of which every parameter is redrawn from a fixed seed: default initialisation leaves norms at
one and routers near zero, which hides mistakes. The reference reads the folder back from disk before it answers, so
golden.npz belongs to the files that are committed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Scalar code only: the vector code of torch rounds pow() differently on each kind of CPU, and inv_freq is compared
# bit for bit.
os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
import transformers
from families import FAMILY_ORACLES
from family_oracles import answers, write
from safetensors.torch import load_file, save_file
from torch import nn

DATA = Path(__file__).parent / "data"
SEED = 1234
# Gaps of router probability, far above what the order of float32 sums can turn round.
MIN_CHOICE_MARGIN = 1e-3  # between the last expert chosen and the first one not
MIN_ORDER_MARGIN = 1e-4  # between two chosen ones: their outputs are summed in that order

Axes = dict[str, Any]
BASE: Axes = {
    "vocab_size": 96,
    "hidden_size": 48,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MOE: Axes = {**BASE, "num_local_experts": 4, "num_experts_per_tok": 2}
DENSE: Axes = {**BASE, "intermediate_size": 72}
ROPE_LLAMA3: Axes = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


@dataclass(frozen=True)
class Oracle:
    """One folder.

    family     mixtral, llama or mistral
    axes       keys of the configuration class
    n_tokens   length of the sequence of ids
    stored     save_pretrained options
    dtype      of the file; the reference always computes in float32
    positions  at how many positions logits are kept, None: at all
    v4_config  rewrite config.json in the spelling of transformers 4
    extra_head store the tied head a second time under its own name
    """

    family: str
    axes: Axes
    n_tokens: int = 24
    stored: Axes = field(default_factory=dict)
    dtype: torch.dtype = torch.float32
    positions: int | None = None
    v4_config: bool = False
    extra_head: bool = False


ORACLES = {
    "mixtral": Oracle("mixtral", MOE, n_tokens=48),
    "mixtral_fused": Oracle("mixtral", MOE, n_tokens=48, stored={"save_original_format": False}),
    "mixtral_sharded": Oracle("mixtral", MOE, n_tokens=48, stored={"max_shard_size": "70KB"}),
    "mixtral_bf16": Oracle("mixtral", MOE, dtype=torch.bfloat16),
    "mixtral_f16": Oracle("mixtral", MOE, dtype=torch.float16),
    "mixtral_tied": Oracle("mixtral", {**MOE, "tie_word_embeddings": True}),
    "mixtral_tied_both": Oracle("mixtral", {**MOE, "tie_word_embeddings": True}, extra_head=True),
    "mixtral_odd": Oracle(
        "mixtral",
        {
            **MOE,
            "vocab_size": 131,
            "hidden_size": 72,
            "intermediate_size": 44,
            "num_attention_heads": 5,
            "num_key_value_heads": 1,
            "head_dim": 12,
            "num_local_experts": 5,
            "num_experts_per_tok": 3,
            "sliding_window": 9,
        },
    ),
    "mixtral_long": Oracle(
        "mixtral",
        {**MOE, "hidden_size": 32, "num_attention_heads": 4, "max_position_embeddings": 640},
        n_tokens=600,
        positions=24,
    ),
    "llama": Oracle("llama", DENSE),
    "llama_v4config": Oracle("llama", DENSE, v4_config=True),
    "llama_tied_rope3": Oracle(
        "llama", {**DENSE, "tie_word_embeddings": True, "head_dim": 16, "rope_parameters": ROPE_LLAMA3}, n_tokens=40
    ),
    "llama_linear": Oracle(
        "llama", {**DENSE, "rope_parameters": {"rope_type": "linear", "rope_theta": 50000.0, "factor": 3.0}}
    ),
    "mistral_swa": Oracle("mistral", {**DENSE, "sliding_window": 4}),
}
CONFIGS = {
    "mixtral": transformers.MixtralConfig,
    "llama": transformers.LlamaConfig,
    "mistral": transformers.MistralConfig,
}


def redraw(model: nn.Module, seed: int) -> None:
    """Draw every parameter anew; router rows are doubled so that the choice of experts is clear."""
    generator = torch.Generator().manual_seed(seed)
    seen: set[int] = set()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.data_ptr() in seen:  # a tied head is the embedding
                continue
            seen.add(parameter.data_ptr())
            r = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            if parameter.dim() == 1:
                r = 1.0 + 0.2 * r
            else:
                r = r * parameter.shape[-1] ** -0.5 * (2.0 if name.endswith("mlp.gate.weight") else 1.0)
            parameter.copy_(r.to(parameter.dtype))


def write_checkpoint(oracle: Oracle, folder: Path) -> None:
    """Save config.json and the tensors, as the reference's users would have them."""
    config = CONFIGS[oracle.family](**oracle.axes)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    redraw(model, SEED)
    model.to(oracle.dtype).save_pretrained(folder, **oracle.stored)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if oracle.extra_head:
        path = folder / "model.safetensors"
        tensors = load_file(path)
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
        save_file(tensors, path, metadata={"format": "pt"})
    if oracle.v4_config:
        path = folder / "config.json"
        stored = json.loads(path.read_text())
        stored["rope_theta"] = stored.pop("rope_parameters")["rope_theta"]
        stored["rope_scaling"] = None
        stored["torch_dtype"] = stored.pop("dtype")
        stored["transformers_version"] = "4.44.0"
        path.write_text(json.dumps(stored, indent=2) + "\n")


class Reference:
    """The framework's model of a folder, in float32, with its routers' answers recorded."""

    def __init__(self, folder: Path) -> None:
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        self.routed: list[tuple[np.ndarray, ...]] = []
        for layer in self.model.model.layers:
            if hasattr(layer.mlp, "experts"):
                self.model.set_experts_implementation("eager")
                layer.mlp.gate.register_forward_hook(self._record)

    def _record(self, _module: nn.Module, _inputs: object, output: tuple[torch.Tensor, ...]) -> None:
        self.routed.append(tuple(t.detach().numpy().copy() for t in output))

    def answer(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """Logits at each position, and in MoE layers which experts with which weight."""
        self.routed.clear()
        with torch.no_grad():
            logits = self.model(input_ids=torch.from_numpy(ids)[None], use_cache=False).logits[0]
        golden = {
            "ids": ids.astype(np.int32),
            "positions": np.arange(len(ids), dtype=np.int32),
            "logits": logits.numpy().astype(np.float32),
            "inv_freq": self.model.model.rotary_emb.inv_freq.numpy().astype(np.float32),
        }
        if self.routed:
            router_logits, weights, experts = (np.stack(a, axis=1) for a in zip(*self.routed, strict=True))
            golden["router_logits"] = router_logits.astype(np.float32)
            golden["router_weights"] = weights.astype(np.float32)
            golden["experts"] = experts.astype(np.int16)
        return golden


def routing_margins(golden: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """At each position the smallest gap at the edge of the choice, and within it (over layers)."""
    k = golden["experts"].shape[-1]
    z = golden["router_logits"].astype(np.float64)
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    p = -np.sort(-p / p.sum(axis=-1, keepdims=True), axis=-1)
    gaps = p[..., :-1] - p[..., 1:]
    return gaps[..., k - 1].min(axis=-1), gaps[..., : k - 1].min(axis=(-2, -1))


def choose_ids(reference: Reference, oracle: Oracle) -> dict[str, np.ndarray]:
    """Random ids whose routing is beyond doubt, and the answers to them.

    An id is redrawn where its position is too close a call; the model is causal, so those before it stay as they are.
    """
    rng = np.random.default_rng(SEED)
    ids = np.concatenate([[1], rng.integers(3, oracle.axes["vocab_size"], oracle.n_tokens - 1)])
    while True:
        golden = reference.answer(ids)
        if "experts" not in golden:
            return golden
        choice, order = routing_margins(golden)
        doubtful = np.flatnonzero((choice <= MIN_CHOICE_MARGIN) | (order <= MIN_ORDER_MARGIN))
        if not len(doubtful):
            golden["margin"] = np.float32(choice.min())
            return golden
        ids[doubtful[0]] = rng.integers(3, oracle.axes["vocab_size"])


def make(name: str) -> None:
    """Write data/NAME."""
    folder = DATA / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    oracle = ORACLES.get(name) or FAMILY_ORACLES[name]
    if isinstance(oracle, Oracle):
        write_checkpoint(oracle, folder)
        golden = choose_ids(Reference(folder), oracle)
    else:
        write(oracle, folder)
        golden = answers(oracle, folder, SEED)
    if oracle.positions is not None:
        # Spread evenly, with the first and the last; the router's answers likewise.
        kept = np.unique(np.linspace(0, oracle.n_tokens - 1, oracle.positions).round().astype(np.int32))
        for key in golden.keys() & {
            "positions",
            "logits",
            "experts",
            "attn_experts",
            "router_logits",
            "router_weights",
        }:
            golden[key] = golden[key][kept]
    np.savez_compressed(folder / "golden.npz", **golden)  # type: ignore[arg-type]  # numpy's stub: allow_pickle
    n_bytes = sum(f.stat().st_size for f in folder.iterdir())
    margin = golden.get("margin", np.float32("nan"))
    print(f"{name:18} margin {margin:.1e} logits std {golden['logits'].std():.2f} {n_bytes} bytes")


def main() -> None:
    """Make the named oracles, or all."""
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in sys.argv[1:] or [*ORACLES, *FAMILY_ORACLES]:
        make(name)


if __name__ == "__main__":
    main()
