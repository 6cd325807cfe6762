# SPDX-License-Identifier: Apache-2.0
"""Write the encoder-decoder oracles under encoder_decoder/: Switch Transformer, and what transformers answers for it.

    python tests/oracles/make_switch.py

The decoder's answers are those of generation: one token at a time with transformers' cache. At once, tokens of the decoder would
count against the experts' capacity too; whole_logits keeps that answer where it is another.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
import transformers
from torch import nn

DATA = Path(__file__).parent / "encoder_decoder"
SEED = 1234
MIN_MARGIN = 1e-3
BASE: dict[str, Any] = {
    "vocab_size": 96,
    "d_model": 24,
    "d_kv": 10,
    "d_ff": 20,
    "num_layers": 4,
    "num_sparse_encoder_layers": 2,
    "num_decoder_layers": 4,
    "num_sparse_decoder_layers": 2,
    "num_heads": 3,
    "num_experts": 4,
    "relative_attention_num_buckets": 12,
    "relative_attention_max_distance": 20,
    "layer_norm_epsilon": 1e-4,
    "decoder_start_token_id": 0,
}
ORACLES: dict[str, tuple[dict[str, Any], int, int]] = {  # keys, tokens of the source and of the sequence
    "switch": (BASE, 40, 30),
    "switch_full": (
        {**BASE, "expert_capacity": 3, "num_decoder_layers": 3, "tie_word_embeddings": False, "router_bias": True},
        21,
        9,
    ),
    "switch_all": (
        {**BASE, "expert_capacity": 5, "num_layers": 2, "num_sparse_decoder_layers": 4, "dense_act_fn": "gelu_new"},
        1,
        12,
    ),
}


def redraw(model: nn.Module) -> None:
    """Draw every parameter anew; router rows are doubled so that the choice of experts is clear."""
    generator = torch.Generator().manual_seed(SEED)
    seen: set[int] = set()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.data_ptr() in seen:  # one embedding under four names
                continue
            seen.add(parameter.data_ptr())
            r = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            if parameter.dim() == 1:
                r = 1.0 + 0.2 * r if "norm" in name else 0.2 * r
            elif "relative_attention_bias" not in name:
                r = r * parameter.shape[-1] ** -0.5 * (2.0 if "router" in name else 1.0)
            if ".q.weight" in name:  # there is no scale of the scores
                r = r * 10**-0.5
            parameter.copy_(r)
        for stack in (model.encoder, model.decoder):  # transformers 5 stores them apart where the head is
            stack.embed_tokens.weight.copy_(model.shared.weight)


class Reference:
    """A folder's model, with its routers' answers recorded."""

    def __init__(self, folder: Path) -> None:
        model: Any = transformers.SwitchTransformersForConditionalGeneration
        self.model = model.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        self.routed: dict[str, list[np.ndarray]] = {}
        self.kept: dict[str, list[np.ndarray]] = {}
        for path, module in self.model.named_modules():
            if path.endswith("mlp.router"):
                module.register_forward_hook(lambda _m, _i, out, path=path: self._record(path, out))

    def _record(self, path: str, out: Any) -> None:
        dispatch, _, logits = out
        self.routed.setdefault(path, []).append(logits[0].detach().numpy().copy())
        self.kept.setdefault(path, []).append(dispatch[0].detach().numpy().copy())

    def answer(self, source: np.ndarray, ids: np.ndarray) -> dict[str, np.ndarray]:
        """Logits of generation, and of the whole sequence at once."""
        one = torch.from_numpy(source)[None]
        with torch.no_grad():
            whole = self.model(input_ids=one, decoder_input_ids=torch.from_numpy(ids)[None], use_cache=False).logits[0]
            self.routed.clear()
            self.kept.clear()
            encoded = self.model.get_encoder()(input_ids=one)
            cache, logits = None, []
            for token in ids:
                out = self.model(
                    encoder_outputs=encoded, decoder_input_ids=torch.tensor([[token]]), cache=cache, use_cache=True
                )
                cache = out.cache
                logits.append(out.logits[0, -1])
        found = {"source": source, "ids": ids, "logits": torch.stack(logits).numpy(), "whole_logits": whole.numpy()}
        return {key: value.astype(np.int32 if value.dtype.kind == "i" else np.float32) for key, value in found.items()}

    def experts(self, stack: str, n_layers: int, n_tokens: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Chosen [T, N] (-1: dense), whether the expert had room [T, N], and the smallest margin of each token [T]."""
        chosen = np.full((n_tokens, n_layers), -1, dtype=np.int16)
        room, margin = np.ones(chosen.shape, dtype=bool), np.full(n_tokens, np.inf)
        for path, parts in self.routed.items():
            if not path.startswith(f"{stack}."):
                continue
            n = int(path.split(".")[2])
            z = np.concatenate(parts).astype(np.float64)
            p = np.exp(z - z.max(axis=-1, keepdims=True))
            p = np.sort(p / p.sum(axis=-1, keepdims=True), axis=-1)
            chosen[:, n] = z.argmax(axis=-1)
            room[:, n] = np.concatenate(self.kept[path]).sum(axis=-1) > 0
            margin = np.minimum(margin, p[:, -1] - p[:, -2])
        return chosen, room, margin


def answers(reference: Reference, n_source: int, n_ids: int) -> dict[str, np.ndarray]:
    """Random ids whose routing is beyond doubt, and the answers to them."""
    config, rng = reference.model.config, np.random.default_rng(SEED)
    source, ids = (rng.integers(2, config.vocab_size, n) for n in (n_source, n_ids))
    ids[0] = config.decoder_start_token_id
    for _ in range(400):
        golden = reference.answer(source, ids)
        golden["source_experts"], golden["source_room"], m1 = reference.experts("encoder", config.num_layers, n_source)
        golden["experts"], room, m2 = reference.experts("decoder", config.num_decoder_layers, n_ids)
        assert room.all(), "one token at a time, no expert is full"
        if m1.min() <= MIN_MARGIN:
            source[int(m1.argmin())] = rng.integers(2, config.vocab_size)
        elif m2.min() <= MIN_MARGIN:
            ids[max(1, int(m2.argmin()))] = rng.integers(2, config.vocab_size)
        else:
            golden["margin"] = np.float32(min(m1.min(), m2.min()))
            return golden
    raise AssertionError("no ids with a clear choice")


def main() -> None:
    """Write every folder."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name, (axes, n_source, n_ids) in ORACLES.items():
        folder = DATA / name
        shutil.rmtree(folder, ignore_errors=True)
        config = transformers.SwitchTransformersConfig(**axes)
        model = transformers.SwitchTransformersForConditionalGeneration(config).eval().to(torch.float32)
        redraw(model)
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        golden = answers(Reference(folder), n_source, n_ids)
        np.savez_compressed(folder / "golden.npz", **golden)
        dropped = int((~golden["source_room"]).sum())
        apart = float(np.abs(golden["logits"] - golden["whole_logits"]).max())
        print(json.dumps({"name": name, "margin": float(golden["margin"]), "dropped": dropped, "apart": apart}))


if __name__ == "__main__":
    main()
