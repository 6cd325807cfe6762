# SPDX-License-Identifier: Apache-2.0
"""Bit-exact: every oracle, every format, all KV caches, on the host; samples on the boards and with clang.

Folders of one shape share an ELF on the host, so what is compiled is one engine for each shape and format.
"""

from __future__ import annotations

import pytest

from colibri_sim.verify import Verdict
from image.packs import IDS, NAMES, Packs
from sampled import sampled

from .mutants import verdict

QUANTS = ("f32", "bf16", "f16", "q8", "q8:32", "q4")
SHAPES = ("mixtral", "mixtral_odd", "mixtral_tied", "llama", "llama_tied_rope3", "mistral_swa")
# each shape meets each format, the KV caches alternate
FULL = [(n, q, ("f32", "q8", "f16")[(i + j) % 3]) for i, n in enumerate(SHAPES) for j, q in enumerate(QUANTS)]
# the others have the shape of one of those, and so its engine: same checkpoint in another file format, or other numbers
OF_SHAPE = {"mixtral": ("bf16", "f16", "fused", "sharded"), "mixtral_tied": ("both",), "llama": ("linear", "v4config")}
MORE = [(f"{n}_{w}", *next(c[1:] for c in FULL if c[0] == n and c[1] == "q8")) for n in OF_SHAPE for w in OF_SHAPE[n]]


def test_no_oracle_is_left_out() -> None:
    from .test_verify_families import FAMILIES, FORMULAS, LONG

    assert {name for name, _, _ in [*FULL, *MORE]} | {*FAMILIES, *FORMULAS, *LONG, "mixtral_long"} == set(NAMES)


def exact(packs: Packs, name: str, quant: str, kv: str, board: str, toolchain: str = "gcc", opt: str = "1") -> Verdict:
    folder = packs.folder(name, quant, board, IDS, kv=kv)
    found = verdict(folder, packs.built(folder, "verify", toolchain, opt) / "firmware.elf")
    assert found.first_difference is None, str(found.first_difference)
    return found


@pytest.mark.parametrize(("name", "quant", "kv"), sampled([*FULL, *MORE]))
def test_host_is_bit_exact(packs: Packs, name: str, quant: str, kv: str) -> None:
    assert exact(packs, name, quant, kv, "linux-x86_64").positions == len(IDS)


def test_one_multiplier_a_row_is_bit_exact(packs: Packs) -> None:
    exact(packs, "mixtral_odd", "default=q4:row", "f32", "linux-x86_64")


@pytest.mark.parametrize(("opt", "kv"), [("0", "f32"), ("2", "f32"), ("3", "q8"), ("s", "f16")])
def test_host_is_bit_exact_at_every_level(packs: Packs, opt: str, kv: str) -> None:
    exact(packs, "mixtral_odd", "default=q8:32,embedding=f16,experts=q4,head=bf16", kv, "linux-x86_64", opt=opt)


def test_host_is_bit_exact_over_a_long_prompt(packs: Packs) -> None:
    ids = tuple(int(7 * i * i + 3 * i) % 90 for i in range(300))
    folder = packs.folder("mixtral_long", "q8", ids=ids, kv="q8")
    found = verdict(folder, packs.built(folder) / "firmware.elf")
    assert found.first_difference is None, str(found.first_difference)
    assert found.positions == 300


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("name", "quant", "kv", "opt"),
    [
        ("mixtral_odd", "q4", "q8", "2"),
        ("llama", "bf16", "f32", "3"),
        ("mixtral_tied", "default=f16,experts=q8:64", "q8", "s"),
    ],
)
def test_host_is_bit_exact_with_clang(packs: Packs, name: str, quant: str, kv: str, opt: str) -> None:
    exact(packs, name, quant, kv, "linux-x86_64", "llvm", opt)


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("name", "quant", "kv", "board", "toolchain", "opt"),
    sampled(
        [
            # every level of both compilers; the boards and formats take turns
            ("mixtral_f16", "f16", "f32", "mps2-an386", "gcc", "0"),
            ("llama_linear", "q4", "f16", "mps3-an547", "gcc", "1"),
            ("mixtral_odd", "q8", "q8", "mps2-an386", "gcc", "2"),
            ("mixtral_odd", "f32", "f32", "mps3-an547", "gcc", "3"),
            ("mixtral", "bf16", "q8", "mps3-an547", "gcc", "s"),
            ("mixtral_odd", "q8", "q8", "virt-riscv32", "gcc", "2"),
            ("llama_tied_rope3", "q4", "f32", "virt-riscv32", "llvm", "s"),
            ("mistral_swa", "f32", "q8", "virt-riscv32f", "gcc", "3"),
            ("mixtral_f16", "f16", "f32", "virt-riscv32f", "llvm", "0"),
            ("mixtral_odd", "q8:32", "q8", "virt-riscv64", "gcc", "s"),
            ("mixtral", "bf16", "f16", "virt-riscv64", "llvm", "3"),
            ("mixtral_odd", "f32", "f32", "virt-aarch64", "gcc", "3"),
            ("mixtral", "q8", "q8", "virt-aarch64", "llvm", "2"),
            ("mistral_swa", "q4", "q8", "virt-aarch64-a72", "gcc", "0"),
            ("mixtral_odd", "q8", "q8", "linux-aarch64", "gcc", "2"),
            ("llama_tied_rope3", "f16", "f32", "linux-aarch64", "llvm", "s"),
            ("mixtral_odd", "f32", "q8", "linux-riscv64", "gcc", "0"),
            ("mixtral", "q4", "f16", "linux-riscv64", "llvm", "3"),
            ("mixtral_tied", "q8:32", "q8", "mps3-an547", "llvm", "0"),
            ("llama", "f32", "q8", "mps2-an386", "llvm", "1"),
            ("mistral_swa", "q4", "q8", "mps3-an547", "llvm", "2"),
            ("mixtral_odd", "bf16", "f16", "mps2-an386", "llvm", "3"),
            ("llama_tied_rope3", "q8:32", "f16", "mps2-an386", "llvm", "s"),
            ("mixtral_odd", "default=q4:row,embedding=q8:64", "f32", "mps2-an505", "gcc", "2"),
            ("mixtral_odd", "default=q8:128,experts=q4:64,embedding=q4", "q8", "mps2-an500", "llvm", "0"),
            ("mixtral_odd", "default=q4:row,embedding=q8:64", "f16", "mps3-an547", "gcc", "2"),
            ("mixtral_odd", "default=q8:128,experts=q4:64,embedding=q4", "q8", "mps3-an547", "llvm", "s"),
            ("mixtral_odd", "default=bf16,experts=f16", "f32", "mps3-an547", "gcc", "3"),
        ]
    ),
)
def test_board_is_bit_exact(packs: Packs, name: str, quant: str, kv: str, board: str, toolchain: str, opt: str) -> None:
    exact(packs, name, quant, kv, board, toolchain, opt)
