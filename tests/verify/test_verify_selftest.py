# SPDX-License-Identifier: Apache-2.0
"""colibri_selftest on every kind of board: it passes what is right, and finds a weight's bit and each fault of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from colibri.audit.elf import Elf
from colibri.cli import targets
from colibri.cli.workflow import board_of
from colibri.folder import Folder
from colibri_sim.qemu.frames import END, FullLogits, Status, encode, message
from colibri_sim.vectors import to_hex
from image.packs import IDS, Packs, settings
from sampled import sampled

from .mutants import patched_build, resealed
from .test_verify_engine_faults import FAULTS, source
from .test_verify_packer_faults import offset_of, rewritten

APP = Path(__file__).with_name("selftest.c")
ERR_SELFTEST = -27
BOARDS = (
    *("microbit", "mps2-an385", "mps2-an386", "mps2-an500", "mps3-an547"),
    *("virt-riscv32", "virt-riscv32f", "virt-riscv64", "virt-aarch64", "linux-x86_64"),
)
Compiler = Literal["gcc", "llvm"]


def status(folder: Folder, elf: Path) -> int:
    """What the application answers, twice over; each time it then computes as from the start, right where it passed."""
    request = encode("V", b"")
    limit = targets.timeout_for(folder, 40, None)
    frames = targets.frames(folder, board_of(folder), elf, request * 2 + END, limit)
    logits, code, again, same = (message(frame) for frame in frames)
    assert isinstance(logits, FullLogits)
    assert isinstance(again, FullLogits)
    assert isinstance(code, Status)
    assert isinstance(same, Status)
    assert same.code == code.code
    assert to_hex(again.values) == to_hex(logits.values)
    if code.code == 0:
        assert to_hex(logits.values) == folder.vectors()["prompts"][0]["logits"][0]
    return code.code


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("board", "toolchain"), sampled((board, toolchain) for board in BOARDS for toolchain in ("gcc", "llvm"))
)
def test_it_passes(packs: Packs, tmp_path: Path, board: str, toolchain: Compiler) -> None:
    chosen = {"max_seq": 9} if board == "microbit" else {}
    folder = packs.private(packs.folder("mixtral", "q8", board, ids=IDS[:4], **chosen))
    elf = patched_build(folder, {}, tmp_path, app=APP, toolchain=toolchain, opt="2")
    assert status(folder, elf) == 0


@pytest.mark.parametrize(
    ("name", "quant", "kv"), [("mixtral_odd", "q4", "q8"), ("llama", "f32", "f32"), ("mixtral_f16", "f16", "f32")]
)
def test_it_passes_every_format_and_a_dense_model(packs: Packs, tmp_path: Path, name: str, quant: str, kv: str) -> None:
    folder = packs.private(packs.folder(name, quant, kv=kv))
    assert status(folder, patched_build(folder, {}, tmp_path, app=APP)) == 0


def test_other_weights_of_the_same_shape_pass_with_the_same_program(packs: Packs, tmp_path: Path) -> None:
    one, other = packs.private(packs.folder("mixtral", "q8")), packs.folder("mixtral_bf16", "q8")
    elf = patched_build(one, {}, tmp_path, app=APP)
    assert (status(one, elf), status(other, elf)) == (0, 0)


FAULTY_BOARDS = [("mps2-an386", "gcc"), ("mps2-an385", "llvm"), ("virt-riscv32", "gcc"), ("linux-x86_64", "llvm")]


@pytest.mark.qemu
@pytest.mark.parametrize(("board", "toolchain"), FAULTY_BOARDS)
def test_one_bit_of_one_weight_fails(packs: Packs, tmp_path: Path, board: str, toolchain: Compiler) -> None:
    """The lowest bit of an int8 weight of the last layer, every checksum right."""
    folder = packs.private(packs.folder("mixtral", "q8", board))
    image = bytearray((folder.path / "model.bin").read_bytes())
    image[offset_of(folder, "layers.1.attn.v.weight") + 5] ^= 1
    folder = rewritten(folder, resealed(image))
    elf = patched_build(folder, {}, tmp_path, app=APP, toolchain=toolchain, opt="2")
    assert status(folder, elf) == ERR_SELFTEST


@pytest.mark.qemu
@pytest.mark.parametrize(("board", "toolchain"), FAULTY_BOARDS)
def test_a_kernel_with_a_fault_fails(packs: Packs, tmp_path: Path, board: str, toolchain: Compiler) -> None:
    """The fault is in the portable set, so the image is laid out for it."""
    folder = packs.private(packs.folder("mixtral", "f32", board, kernels="portable"))
    edits = FAULTS["the lanes of dot8 added in another order"].edits
    elf = patched_build(folder, edits, tmp_path, app=APP, toolchain=toolchain, opt="2")
    assert status(folder, elf) == ERR_SELFTEST


# the snap left out is of a value so small that the residual stream loses it: no logit has another bit
@pytest.mark.parametrize("name", sampled((name,) for name in sorted(FAULTS.keys() - {"a snap left out"})))
def test_each_fault_of_the_engine_that_verify_finds_fails(packs: Packs, tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    folder = packs.pack(source(packs, fault), settings(fault.quant, kv=fault.kv))
    elf = patched_build(folder, fault.edits, tmp_path, app=APP)
    frames = targets.frames(folder, board_of(folder), elf, encode("V", b"") + END, 60.0)
    *_, last = (message(frame) for frame in frames)
    assert isinstance(last, Status)
    assert last.code == ERR_SELFTEST


@pytest.mark.qemu
def test_a_program_that_does_not_call_it_does_not_hold_it(packs: Packs, tmp_path: Path) -> None:
    folder = packs.private(packs.folder("mixtral", "q8", "mps2-an386"))
    with_it = Elf.read(patched_build(folder, {}, tmp_path, app=APP))
    assert with_it.symbol("colibri_selftest") is not None
    without = Elf.read(packs.built(packs.folder("mixtral", "q8", "mps2-an386"), "generate") / "firmware.elf")
    assert without.symbol("colibri_forward") is not None
    assert without.symbol("colibri_selftest") is None
