# SPDX-License-Identifier: Apache-2.0
"""Weights where the user wants them, and what binding to them costs."""

from __future__ import annotations

import pytest

from colibri.boards import load_board
from colibri_sim.qemu.counter import count
from colibri_sim.qemu.frames import END, bench_request
from image.packs import DEMO, Packs
from verify.mutants import verdict

from . import binutils

DDR = 0x90000000


@pytest.mark.qemu
def test_weights_in_the_an547_s_ddr_are_bit_exact_there(packs: Packs) -> None:
    folder = packs.folder("mixtral", board="mps3-an547", weights_address=DDR)
    elf = packs.built(folder, "verify", opt="2") / "firmware.elf"
    assert binutils.sections(elf)[".colibri_weights"].vma == DDR
    assert verdict(folder, elf).first_difference is None


@pytest.mark.qemu
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_init_without_crc_takes_at_most_1000_instructions(packs: Packs, board: str) -> None:
    # the application checks the CRC too: everything up to its first byte is what init does without
    folder = packs.folder(DEMO, board=board)
    elf = packs.built(folder, "bench", opt="2") / "firmware.elf"
    marks = count(load_board(board), elf, bench_request([1]) + END, ["colibri_init", "colibri_crc32"])
    begin = next(i for i, (name, _) in enumerate(marks) if name == "colibri_init")
    assert marks[begin + 1][0] == "colibri_crc32"
    n_instructions = marks[begin + 1][1] - marks[begin][1]
    print(f"{board}: colibri_init without CRC: {n_instructions} instructions")
    assert 20 < n_instructions <= 1000
