# SPDX-License-Identifier: Apache-2.0
"""Bit-exact up to the last position of the context, on boards too, and the status of the token after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colibri.cli import targets
from colibri.cli.workflow import board_of
from colibri.folder import Folder
from colibri_sim.qemu.frames import END, Message, Status, Token, generate_request, message, verify_request
from colibri_sim.vectors import from_hex
from image.packs import DEMO, Packs, checkpoint

from .mutants import patched_build, verdict

CONTEXT_FULL = -20
"""COLIBRI_ERR_CONTEXT_FULL of firmware/include/colibri/status.h."""


def some_ids(n: int, vocab: int) -> tuple[int, ...]:
    return tuple(int(7 * i * i + 3 * i + 1) % vocab for i in range(n))


def said(folder: Folder, elf: Path, request: bytes) -> list[Message]:
    limit = targets.timeout_for(folder, 2 * targets.vectors_positions(folder), None)
    return [message(f) for f in targets.frames(folder, board_of(folder), elf, request + END, limit)]


def greedy(folder: Folder) -> int:
    return int(np.argmax(from_hex(folder.vectors()["prompts"][0]["logits"][-1])))


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("board", "toolchain", "quant", "kv"), [("mps2-an386", "gcc", "q8", "q8"), ("mps3-an547", "llvm", "f32", "f32")]
)
def test_a_board_uses_its_last_position_and_refuses_one_more(
    packs: Packs, board: str, toolchain: str, quant: str, kv: str
) -> None:
    ids = some_ids(128, checkpoint("mixtral").model.config.vocab_size)
    folder = packs.folder("mixtral", quant, board, ids, kv=kv)
    assert checkpoint("mixtral").model.config.max_seq == len(ids)
    elf = packs.built(folder, "verify", toolchain, "2") / "firmware.elf"
    found = verdict(folder, elf)
    assert found.first_difference is None, str(found.first_difference)
    assert found.positions == 128
    assert said(folder, elf, verify_request([*ids, 1])) == [Status(CONTEXT_FULL, None)]

    generate = packs.built(folder, "generate", toolchain, "2") / "firmware.elf"
    answer = [Token(greedy(folder)), Status(CONTEXT_FULL, 128)]  # the token needs a place only to be continued
    assert said(folder, generate, generate_request(ids, 2)) == answer
    assert said(folder, generate, generate_request(ids, 1)) == [answer[0], Status(0, 128)]
    assert said(folder, generate, generate_request([*ids, 1], 1)) == [Status(CONTEXT_FULL, 0)]


def test_the_demo_model_is_bit_exact_over_its_whole_context(packs: Packs, tmp_path: Path) -> None:
    """With the fma instruction, without which it takes a minute."""
    ids = some_ids(512, checkpoint(DEMO).model.config.vocab_size)
    folder = packs.private(packs.folder(DEMO, "q8", ids=ids))
    assert checkpoint(DEMO).model.config.max_seq == len(ids)
    elf = patched_build(folder, {}, tmp_path, flags=["-mfma"], opt="2")
    found = verdict(folder, elf)
    assert found.first_difference is None, str(found.first_difference)
    assert found.positions == 512
    assert said(folder, elf, verify_request([*ids, 1])) == [Status(CONTEXT_FULL, None)]
