# SPDX-License-Identifier: Apache-2.0
"""Instructions of colibri_tokenize for a text of SAMPLE_CHARACTERS, by algorithm, in the application text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

from colibri.boards import load_board
from colibri.build.firmware import BuildOptions, build
from colibri.build.products import ELF
from colibri.cli.workflow import Checkpoint, pack, read_checkpoint
from colibri.folder import IMAGE, read_build, read_folder
from colibri.layout.settings import Settings
from colibri.layout.text import SAMPLE_CHARACTERS
from colibri.text.device import Algorithm
from colibri_sim.qemu.counter import count
from colibri_sim.qemu.frames import END, text_request
from colibri_sim.vectors import Prompt
from text.derived import DEMO, tokenizer_json

SAMPLE = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the sun with her dog, and every day they "
    "went to the big park together. One day, Tom and his mom went to the store to buy some apples. The man at the store was very "
    "kind and gave them a red ball, and Tom said thank you. The old cat sat on the table near the window and looked at the rain. "
    "It was sad because it could not go out and play with the small birds in the tree. Ben wanted to build a tall tower with his "
)
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)


def instructions(board_name: str, toolchain: str, algorithm: Algorithm, work: Path) -> tuple[str, int]:
    """The compiler's version and the instructions, the call included. The demo model with a tokenizer of 512 tokens."""
    board = load_board(board_name)
    demo = read_checkpoint(DEMO.parent)
    source = Checkpoint(replace(demo.model, tokenizer_json=tokenizer_json(algorithm)), demo.name)
    pack(source, board, Settings(text_bytes=SAMPLE_CHARACTERS), work, (Prompt((1,)),))
    target = build(read_folder(work), board, BuildOptions("text", toolchain))  # type: ignore[arg-type]  # gcc or llvm
    markers = ("colibri_tokenize", "colibri_detokenizer_init")
    image = work / IMAGE if board.image == "mapped" else None
    events = count(board, target / ELF, text_request(SAMPLE.encode(), 0) + END, markers, image=image)
    (begin, end) = (next(n for name, n in events if name == marker) for marker in markers)
    return read_build(target)["compiler"], end - begin
