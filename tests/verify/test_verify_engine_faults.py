# SPDX-License-Identifier: Apache-2.0
"""One thing wrong in the engine or a kernel: `verify` names the first element that differs, with the bits it has.

The same mistake is made in a golden model, which predicts the whole answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri.cli.workflow import Checkpoint
from colibri_sim.golden import GoldenModel, products
from colibri_sim.golden import functions as f
from colibri_sim.golden import vectors as v
from colibri_sim.golden.fma import fma
from image.packs import Edit, Packs, checkpoint, settings

from .mutants import Edits, method, patched_build, predicted, same, verdict


@dataclass(frozen=True)
class Fault:
    """edits make it in C; methods and functions in the golden model; `first` is the tensor that must show it."""

    edits: Edits
    first: str
    methods: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    config: Callable[[Any], Any] | None = None
    name: str = "mixtral"
    quant: str = "f32"
    kv: Any = "f32"
    checkpoint: Edit | None = None

    def mutant(self, golden: GoldenModel) -> GoldenModel:
        if self.config is not None:
            golden.config = self.config(golden.config)
        return method(**self.methods)(golden) if self.methods else same(golden)


def rising_dot8(a: Any, b: Any) -> Any:
    """dot8 whose lanes are added in rising order at the end."""
    lanes_a, lanes_b = v._lanes(a), v._lanes(b)
    acc = np.zeros(np.broadcast_shapes(lanes_a.shape[1:], lanes_b.shape[1:]), dtype=np.float32)
    for x, y in zip(lanes_a, lanes_b, strict=True):
        acc = fma(x.astype(np.float32), y.astype(np.float32), acc)
    total = acc[0]
    for lane in acc[1:]:
        total = total + lane
    return total


def fused_rms(x: Any, eps: float) -> Any:
    rn = np.float32(1) / np.float32(x.shape[-1])
    return f.snap(x * f.rsqrt(fma(f.snap(v.dot8(x, x)), rn, np.float32(eps)))[..., None])


def earlier_keys(self: GoldenModel, call: Any, a: Any, q: Any, keys: Any, values: Any) -> Any:
    return GoldenModel.attend(self, call, a, q, keys[np.maximum(np.arange(len(keys)) - 1, 0)], values)


def other_pairs(config: Any) -> Any:
    def turned(layer: Any) -> Any:
        rope = replace(layer.mixer.rope, pairing="adjacent")
        return replace(layer, mixer=replace(layer.mixer, rope=rope))

    return replace(config, layers=tuple(map(turned, config.layers)))


def keys_with_the_scales_of_values(self: Any, layer: int, position: int, k: Any, v_: Any) -> Any:
    q_k, q_v = (products.quantise(x.reshape(-1, x.shape[-1])) for x in (k, v_))
    keys, values = self._streams[layer]
    keys[position : position + len(k)] = replace(q_k, scales=q_v.scales).values().reshape(k.shape)
    values[position : position + len(k)] = q_v.values().reshape(k.shape)


def equal_routers(tensors: dict[str, Any]) -> None:
    for name in tensors:
        if name.endswith("gate.weight") and "experts" not in name:
            tensors[name][3] = tensors[name][1]


def tiny_output_row(tensors: dict[str, Any]) -> None:
    tensors["model.layers.0.self_attn.o_proj.weight"][0] *= np.float32(2.0**-37)


FAULTS = {
    "the lanes of dot8 added in another order": Fault(
        {"kernels/portable/dot8.h": ("(((lane0 + lane4) + (lane2 + lane6)) + ((lane1 + lane5) + (lane3 + lane7)))",
                                     "(((((((lane0 + lane1) + lane2) + lane3) + lane4) + lane5) + lane6) + lane7)")},
        "q",
        functions={"vectors__dot8": rising_dot8},
    ),
    "a product and a sum contracted": Fault(
        {"engine/norm.c": ("colibri_kernels.dot(x, x, n) * rn + COLIBRI_NORM_EPS(norm)",
                           "colibri_fma(colibri_kernels.dot(x, x, n), rn, COLIBRI_NORM_EPS(norm))")},
        "ffn_norm",
        functions={"vectors__rms": fused_rms},
    ),
    "a snap left out": Fault(
        {"kernels/portable/matvec_f32.c": ("out[row] = colibri_snap(COLIBRI_DOT8_END);", "out[row] = COLIBRI_DOT8_END;")},
        "attn_out",
        methods={"project": lambda self, name, x: v.dot8_matrix(self.stored(name).values(), x)},
        checkpoint=tiny_output_row,
    ),
    "activations truncated, not rounded": Fault(
        {"kernels/portable/quantise.c": ("(int8_t)(uint8_t)colibri_bits(x[i] * inv + COLIBRI_RINT_MAGIC)",
                                         "(int8_t)(x[i] * inv)")},
        "q",
        functions={"products__rint": np.trunc},
        quant="q8",
    ),
    "the last bit of a coefficient of exp": Fault(
        {"kernels/coefficients.h": ("#define COLIBRI_E2 0x1.fffffcp-2f", "#define COLIBRI_E2 0x1.fffffep-2f")},
        "attn",
        functions={"functions__C": {**f.C, "E2": np.float32(float.fromhex("0x1.fffffep-2"))}},
    ),
    "a routing tie to the higher index": Fault(
        {"engine/top_k.c": ("(colibri_mask_equal(key, last_key) & colibri_mask_below(last_id, i));\n"
                            "            uint32_t better = after & colibri_mask_below_u32(best_key, key);",
                            "(colibri_mask_equal(key, last_key) & colibri_mask_below(i, last_id));\n"
                            "            uint32_t better = after & ~colibri_mask_below_u32(key, best_key);")},
        "expert_ids",
        methods={
            "select": lambda self, r, z: r.n_experts - 1 - np.argsort(-z[:, ::-1], axis=1, kind="stable")[
                :, : r.top_k
            ].astype(np.int32)
        },
        checkpoint=equal_routers,
    ),
    "the wrong pairs rotated": Fault(
        {"engine/rope.c": ("COLIBRI_KIND_ROPE_STEP(kind),\n                               COLIBRI_KIND_ROPE_DISTANCE(kind)",
                           "2u, 1u")},
        "q_rope",
        config=other_pairs,
    ),
    "keys of the position before": Fault(
        {"engine/cache.c": ("    store(state->k + COLIBRI_LAYER_K_AT(layer) + at,",
                            "    if (position == 0) {\n"
                            "        store(state->k + COLIBRI_LAYER_K_AT(layer), NULL, k, n_heads, head_dim);\n"
                            "    }\n"
                            "    store(state->k + COLIBRI_LAYER_K_AT(layer) + at + n_heads * head_dim,")},
        "attn",
        methods={"attend": earlier_keys},
        quant="q8",
    ),
    "a key's scale of the q8 cache taken from its value": Fault(
        {"engine/cache.c": ("state->k + COLIBRI_LAYER_K_AT(layer), SCALES(k, K, layer, 0)",
                            "state->k + COLIBRI_LAYER_K_AT(layer), SCALES(v, V, layer, 0)")},
        "attn",
        functions={"cache__KvCache.append": keys_with_the_scales_of_values},
        quant="q8",
        kv="q8",
    ),
    "a window one position too wide": Fault(
        {"engine/attention.c": ("position >= window ? position - window + 1u", "position >= window ? position - window")},
        "attn",
        config=lambda c: replace(
            c,
            layers=tuple(
                replace(x, mixer=replace(x.mixer, window=(x.mixer.window or 0) + 1)) for x in c.layers
            ),
        ),
        name="mistral_swa",
        quant="q4",
    ),
}  # fmt: skip


def source(packs: Packs, fault: Fault) -> Checkpoint:
    return packs.doctored(fault.name, fault.checkpoint) if fault.checkpoint else checkpoint(fault.name)


def check(packs: Packs, name: str, board: str, scratch: Path) -> None:
    fault = FAULTS[name]
    folder = packs.pack(source(packs, fault), settings(fault.quant, kv=fault.kv), board)
    expected = predicted(folder, fault.mutant, **fault.functions)
    assert expected.tensor == fault.first
    elf = patched_build(folder, fault.edits, scratch)
    assert verdict(folder, elf).first_difference == expected


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found_and_named(packs: Packs, tmp_path: Path, name: str) -> None:
    check(packs, name, "linux-x86_64", tmp_path)


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["a routing tie to the higher index", "the last bit of a coefficient of exp"])
def test_fault_is_found_and_named_on_the_board(packs: Packs, tmp_path: Path, name: str) -> None:
    check(packs, name, "mps3-an547", tmp_path)


def test_doctored_checkpoints_are_exact_on_the_true_engine(packs: Packs) -> None:
    """The faults above are seen for the fault, not for the doctoring."""
    for edit in (equal_routers, tiny_output_row):
        folder = packs.pack(packs.doctored("mixtral", edit), settings("f32"))
        assert verdict(folder, packs.built(folder) / "firmware.elf").bit_exact


def test_a_forward_that_differs_from_its_steps_is_found(packs: Packs, tmp_path: Path) -> None:
    folder = packs.private(packs.folder("mixtral", "q8"))
    edits = {
        "engine/forward.c": (
            "    return status;",
            "    if (status == COLIBRI_OK && logits != NULL) {\n        logits[3] = -logits[3];\n    }\n    return status;",
        )
    }
    found = verdict(folder, patched_build(folder, edits, tmp_path)).first_difference
    assert found is not None
    assert (found.position, found.tensor, found.element) == (7, "logits of colibri_forward", 3)
    assert int(str(found.expected_bits), 16) ^ int(str(found.got_bits), 16) == 0x80000000


def test_slices_that_lose_a_row_are_found(packs: Packs, tmp_path: Path) -> None:
    """A fault that only cut work can show: `verify` steps by stages, then runs everything in one call."""
    folder = packs.private(packs.folder("mixtral", "q8"))
    edits = {
        "engine/stages.c": (
            "return run_head(call, begin, end, last);",
            "return run_head(call, begin + (state->header.seq_len > 1 && begin == 0), end, last);",
        )
    }
    found = verdict(folder, patched_build(folder, edits, tmp_path)).first_difference
    assert found is not None
    assert found.tensor == "logits of colibri_forward"
