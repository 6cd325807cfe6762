# SPDX-License-Identifier: Apache-2.0
"""A valid checkpoint of a few hundred numbers, held as bytes, for tests that then spoil one thing."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

V, H, WIDTH, E, HEADS, KV_HEADS, HEAD_DIM = 6, 8, 4, 2, 2, 1, 4

MIXTRAL_CONFIG: dict[str, Any] = {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "vocab_size": V,
    "hidden_size": H,
    "intermediate_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "num_local_experts": E,
    "num_experts_per_tok": 1,
    "max_position_embeddings": 32,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "sliding_window": None,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

LAYER = "model.layers.0."
MOE = LAYER + "block_sparse_moe."

SHAPES = {
    "model.embed_tokens.weight": (V, H),
    LAYER + "input_layernorm.weight": (H,),
    LAYER + "self_attn.q_proj.weight": (HEADS * HEAD_DIM, H),
    LAYER + "self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, H),
    LAYER + "self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, H),
    LAYER + "self_attn.o_proj.weight": (H, HEADS * HEAD_DIM),
    LAYER + "post_attention_layernorm.weight": (H,),
    MOE + "gate.weight": (E, H),
    **{
        f"{MOE}experts.{j}.{w}.weight": (H, WIDTH) if w == "w2" else (WIDTH, H)
        for j in range(E)
        for w in ("w1", "w2", "w3")
    },
    "model.norm.weight": (H,),
    "lm_head.weight": (V, H),
}


@dataclass
class Stored:
    """A tensor as bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass
class Tiny:
    """What a folder will hold; tests change it before `write`."""

    config: dict[str, Any]
    tensors: dict[str, Stored]
    files: dict[str, bytes] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config))
        (folder / "model.safetensors").write_bytes(safetensors_bytes(self.tensors))
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return folder

    def rename(self, old: str, new: str) -> None:
        self.tensors[new] = self.tensors.pop(old)


def f32(values: np.ndarray) -> Stored:
    return Stored("F32", values.shape, values.astype("<f4").tobytes())


def mixtral() -> Tiny:
    rng = np.random.default_rng(7)
    tensors = {name: f32(rng.standard_normal(shape)) for name, shape in SHAPES.items()}
    return Tiny(json.loads(json.dumps(MIXTRAL_CONFIG)), tensors)


def llama() -> Tiny:
    tiny = mixtral()
    for key in ("num_local_experts", "num_experts_per_tok", "sliding_window"):
        del tiny.config[key]
    tiny.config |= {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    for name in [n for n in tiny.tensors if n.startswith(MOE)]:
        stored = tiny.tensors.pop(name)
        for old, new in (("0.w1", "gate"), ("0.w3", "up"), ("0.w2", "down")):
            if name == f"{MOE}experts.{old}.weight":
                tiny.tensors[f"{LAYER}mlp.{new}_proj.weight"] = stored
    return tiny


def mistral() -> Tiny:
    tiny = llama()
    tiny.config |= {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 4}
    return tiny


def safetensors_header(tensors: dict[str, Stored]) -> dict[str, Any]:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, t in tensors.items():
        header[name] = {"dtype": t.dtype, "shape": list(t.shape), "data_offsets": [at, at + len(t.data)]}
        at += len(t.data)
    return header


def container(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def safetensors_bytes(tensors: dict[str, Stored]) -> bytes:
    return container(json.dumps(safetensors_header(tensors)).encode(), b"".join(t.data for t in tensors.values()))


def write_shards(tiny: Tiny, folder: Path, n_shards: int) -> dict[str, Any]:
    """Write the tensors over several files; return the index, which is written too."""
    tiny.write(folder)
    (folder / "model.safetensors").unlink()
    weight_map = {}
    for i in range(n_shards):
        name = f"model-{i + 1:05}-of-{n_shards:05}.safetensors"
        part = dict(list(tiny.tensors.items())[i::n_shards])
        (folder / name).write_bytes(safetensors_bytes(part))
        weight_map |= dict.fromkeys(part, name)
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    write_index(folder, index)
    return index


def write_index(folder: Path, index: object) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
