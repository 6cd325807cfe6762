# SPDX-License-Identifier: Apache-2.0
"""Bit-exact: an oracle of every family on the host, samples on the boards; models with axes drawn at random.

tests/verify/test_verify_matrix.py has every format, compiler and board for the common families.
"""

from __future__ import annotations

import random

import pytest

from colibri.axes import Attention, Ffn, Layer, Norm, Rope, Router
from colibri.cli.workflow import Checkpoint
from colibri.model import ModelConfig
from colibri_sim.golden import GoldenModel
from colibri_sim.vectors import golden_model, tensors_at
from image.packs import IDS, NAMES, Packs, checkpoint, settings
from sampled import sampled

from .mutants import verdict, verdict_with
from .random_models import random_checkpoint, random_model
from .test_verify_matrix import FULL, MORE

FORMULAS = {"glam", "deepspeed_moe", "pr_moe", "hierarchical_moe", "dynamic_moe", "dynamic_moe_at_most"}
"""tests/verify/test_verify_formulas.py has them."""
FAMILIES = sorted(
    set(NAMES) - {name for name, _, _ in [*FULL, *MORE]} - {n for n in NAMES if n.endswith("_long")} - FORMULAS
)
LONG = sorted(name for name in NAMES if name.endswith("_long") and not name.startswith("mixtral"))
FORMATS = [("f32", "f32"), ("q8", "q8"), ("q8", "f16"), ("q8:32", "f32"), ("q4", "q8"), ("bf16", "f16")]


def exact(packs: Packs, name: str, quant: str, kv: str, board: str, ids: tuple[int, ...] = IDS, opt: str = "1") -> None:
    folder = packs.folder(name, quant, board, ids, kv=kv)
    found = verdict(folder, packs.built(folder, "verify", "gcc", opt) / "firmware.elf")
    assert found.first_difference is None, str(found.first_difference)
    assert found.positions == len(ids)
    assert folder.vectors()["prompts"][0]["range_at"] is None


@pytest.mark.parametrize(
    ("name", "quant", "kv"), sampled((n, *FORMATS[(2 * i + j) % 6]) for i, n in enumerate(FAMILIES) for j in range(2))
)
def test_every_family_is_bit_exact(packs: Packs, name: str, quant: str, kv: str) -> None:
    exact(packs, name, quant, kv, "linux-x86_64")


@pytest.mark.parametrize("name", sampled((name,) for name in LONG))
def test_past_window_chunk_and_original_context(packs: Packs, name: str) -> None:
    vocab = checkpoint(name).model.config.vocab_size
    ids = tuple((7 * i * i + 3 * i) % vocab for i in range(600))
    exact(packs, name, "q8", "q8", "linux-x86_64", ids)


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("name", "quant", "kv", "board", "opt"),
    sampled(
        [
            ("deepseek_v2", "q8", "q8", "mps2-an386", "2"),
            ("jetmoe", "f32", "f32", "mps2-an386", "s"),
            ("gpt_oss", "q8", "f16", "mps2-an386", "2"),
            ("lfm2_moe", "q8", "q8", "mps3-an547", "2"),
            ("phimoe", "f32", "f32", "mps3-an547", "s"),
            ("deepseek_v3", "q4", "q8", "mps3-an547", "2"),
            ("llama4", "q8", "q8", "virt-riscv32", "2"),
            ("afmoe", "f32", "f32", "virt-riscv32", "s"),
            ("llama_moe", "q8:32", "f32", "virt-riscv32", "2"),
            ("qwen2_moe", "q8", "f32", "virt-aarch64", "3"),
        ]
    ),
)
def test_boards_are_bit_exact(packs: Packs, name: str, quant: str, kv: str, board: str, opt: str) -> None:
    exact(packs, name, quant, kv, board, opt=opt)


def golden_of(source: Checkpoint, quant: str, kv: str) -> GoldenModel:
    chosen = settings(quant, kv=kv)
    return golden_model(source.model, source.model.config, chosen.policy.resolve(source.model.config), chosen.kv)


def exact_at_random(packs: Packs, seed: int, board: str = "linux-x86_64") -> None:
    """A model without a checkpoint: its folder cannot find one to locate a difference, so the golden model is given."""
    rng = random.Random(seed)
    quant, kv = rng.choice(FORMATS)
    source = random_checkpoint(seed)
    ids = tuple(rng.randrange(source.model.config.vocab_size) for _ in range(12))
    folder = packs.pack(source, settings(quant, kv=kv), board, ids)
    golden = golden_of(source, quant, kv)
    elf = packs.built(folder) / "firmware.elf"
    found = verdict_with(folder, elf, lambda some, position: tensors_at(golden, some, position))
    assert found.first_difference is None, f"seed {seed}, {quant}, kv {kv}: {found.first_difference}"


@pytest.mark.parametrize("seed", range(4))
def test_random_axes_are_bit_exact(packs: Packs, seed: int) -> None:
    exact_at_random(packs, seed)


def test_a_router_that_ranks_beside_a_larger_one_that_does_not(packs: Packs) -> None:
    """Their vectors lie in one scratch, which the larger number of experts must not make them leave."""
    rope = Rope("half", (1.0, 0.1))
    attention, norm = Attention(2, 1, 4, 0.5, rope), Norm(1e-5)
    ffns = (
        Ffn(1, router=Router(90, 2)),
        Ffn(1, router=Router(6, 3, score="sigmoid", correction=True, weights="score")),
    )
    layers = tuple(Layer(attention, ffn, norm, norm) for ffn in (*ffns, ffns[1]))
    config = ModelConfig("narrow", 20, 5, 24, layers, norm, tied_head=False)
    source = Checkpoint(random_model(config, 1), "narrow")
    folder = packs.pack(source, settings("f32", kv="f32"), "linux-x86_64", IDS)
    golden = golden_of(source, "f32", "f32")
    elf = packs.built(folder) / "firmware.elf"
    found = verdict_with(folder, elf, lambda some, position: tensors_at(golden, some, position))
    assert found.first_difference is None, str(found.first_difference)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4, 8), *range(100, 200)])
def test_more_random_axes_are_bit_exact(packs: Packs, seed: int) -> None:
    exact_at_random(packs, seed)


@pytest.mark.qemu
@pytest.mark.parametrize(("seed", "board"), [(1, "mps2-an386"), (7, "mps3-an547"), (9, "virt-riscv32")])
def test_random_axes_are_bit_exact_on_boards(packs: Packs, seed: int, board: str) -> None:
    exact_at_random(packs, seed, board)
