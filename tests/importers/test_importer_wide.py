# SPDX-License-Identifier: Apache-2.0
"""One layer as wide as the large models have them: 4096 elements, 128k tokens, 256 experts of which 16 are chosen."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import tiny_checkpoint as tc

from colibri.boards import load_board
from colibri.importers import load
from colibri.importers.decode import to_float32
from colibri.layout.plan import make_plan
from colibri.layout.settings import Settings
from colibri.model import F32Array, Model
from colibri.quantise import Policy, Stored, store
from colibri_sim.golden import GoldenModel

V, H, E, K, WIDTH, HEADS, KV, D = 128 * 1024, 4096, 256, 16, 16, 32, 8, 128
CONFIG = {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "vocab_size": V,
    "hidden_size": H,
    "intermediate_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "num_local_experts": E,
    "num_experts_per_tok": K,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
}
SHAPES = {
    tc.LAYER + "input_layernorm.weight": (H,),
    tc.LAYER + "self_attn.q_proj.weight": (HEADS * D, H),
    tc.LAYER + "self_attn.k_proj.weight": (KV * D, H),
    tc.LAYER + "self_attn.v_proj.weight": (KV * D, H),
    tc.LAYER + "self_attn.o_proj.weight": (H, HEADS * D),
    tc.LAYER + "post_attention_layernorm.weight": (H,),
    tc.MOE + "gate.weight": (E, H),
    **{
        f"{tc.MOE}experts.{j}.{w}.weight": (H, WIDTH) if w == "w2" else (WIDTH, H)
        for j in range(E)
        for w in ("w1", "w2", "w3")
    },
    "model.norm.weight": (H,),
    "model.embed_tokens.weight": (V, H),  # last: its rows but the first stay a hole in the file
}
TOKEN = 5


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("wide")
    header, at = {}, 0
    for name, shape in SHAPES.items():
        n_bytes = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + n_bytes]}
        at += n_bytes
    text = json.dumps(header).encode()
    rng = np.random.default_rng(3)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in SHAPES.items():
            n_elems = math.prod(shape) if name != "model.embed_tokens.weight" else (TOKEN + 1) * H
            values = rng.standard_normal(n_elems, np.float32) * np.float32(shape[-1] ** -0.5)
            values += np.float32(1.0) if len(shape) == 1 else np.float32(0.0)
            file.write((values.view(np.uint32) >> 16).astype("<u2").tobytes())
        file.truncate(8 + len(text) + at)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return load(folder)


def test_every_tensor_has_its_shape_and_the_last_expert_its_values(wide: Model) -> None:
    assert [(t.name, t.shape) for t in wide] == list(wide.config.tensor_shapes().items())
    assert len(wide.tensors) == 3 * E + 9
    last = wide.tensors[f"layers.0.experts.{E - 1}.down.weight"].read()
    assert last.shape == (H, WIDTH)
    assert np.isclose(last.std(), WIDTH**-0.5, rtol=0.02)
    assert np.unique(last).size > 1000


def test_the_plan_counts_what_the_shapes_say(wide: Model) -> None:
    plan = make_plan(wide.config, load_board("linux-x86_64"), Settings(policy=Policy.parse("q8")))
    attention, experts, head = 2 * HEADS * D * H + 2 * KV * D * H, K * 3 * WIDTH * H + E * H, V * H
    assert plan.macs_per_token - (attention + experts + head) in range(
        64 * HEADS * D * 4
    )  # and the scores of the context


def test_the_golden_model_chooses_the_experts_that_numpy_chooses(wide: Model) -> None:
    """Of the vocabulary a few rows: all 128k logits of one token would take a minute, and are no other arithmetic."""
    rows = 8
    config = replace(wide.config, vocab_size=rows)
    embedding = first_rows(wide, rows)
    policy = Policy.parse("f32").resolve(config)

    def stored(name: str) -> Stored:
        tensor = wide.tensors[name]
        if name == "embed.weight":
            tensor = replace(tensor, shape=(rows, H), read=lambda: embedding.copy())
        return store(tensor, policy.format_of(name))

    result = GoldenModel(config, stored).forward([TOKEN])
    assert result.experts[0][0].tolist() == chosen_by_numpy(wide, embedding[TOKEN].astype(np.float64))


def first_rows(model: Model, rows: int) -> F32Array:
    path = model.path / "model.safetensors"
    with path.open("rb") as file:
        file.seek(-2 * V * H, 2)
        return to_float32(file.read(2 * rows * H), "BF16", (rows, H))


def chosen_by_numpy(model: Model, x: np.ndarray) -> list[int]:
    """One layer at position 0, where attention gives back v and RoPE turns nothing."""

    def weight(name: str) -> np.ndarray:
        return model.tensors[f"layers.0.{name}.weight"].read().astype(np.float64)

    def normed(values: np.ndarray, name: str) -> np.ndarray:
        return values / np.sqrt((values**2).mean() + 1e-5) * weight(name)

    v = (weight("attn.v") @ normed(x, "attn_norm")).reshape(KV, D)
    x = x + weight("attn.o") @ np.repeat(v, HEADS // KV, axis=0).ravel()
    logits = weight("router") @ normed(x, "ffn_norm")
    return np.argsort(-logits, kind="stable")[:K].tolist()
