# SPDX-License-Identifier: Apache-2.0
"""Each set of kernels is built once a session for each board, compiler and level."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from colibri.boards import load_board

from .program import Program, build_program

Programs = Callable[..., Program]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    built: dict[tuple[str, ...], Program] = {}

    def build(board: str, kernels: str, toolchain: str = "gcc", opt: str = "2") -> Program:
        key = (board, kernels, toolchain, opt)
        if key not in built:
            folder = tmp_path_factory.mktemp("-".join(key))
            built[key] = build_program(load_board(board), kernels, toolchain, opt, folder)
        return built[key]

    return build
