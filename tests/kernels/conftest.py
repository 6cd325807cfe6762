# SPDX-License-Identifier: Apache-2.0
"""Each set of kernels is built once a session for each board, compiler and level."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from colibri.boards import load_board
from image.packs import packs

from .program import Kv, Program, build_program

__all__ = ["packs", "programs"]

Programs = Callable[..., Program]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    built: dict[tuple[str, ...], Program] = {}

    def build(
        board: str, kernels: str, toolchain: str = "gcc", opt: str = "2", *, main: str = "program.c", kv: Kv = "f32"
    ) -> Program:
        key = (board, kernels, toolchain, opt, main, kv)
        if key not in built:
            folder = tmp_path_factory.mktemp("-".join(key))
            built[key] = build_program(load_board(board), kernels, toolchain, opt, folder, main, kv)
        return built[key]

    return build
