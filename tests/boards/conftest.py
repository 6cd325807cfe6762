# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from echo_build import build_echo

from colibri.boards import load_board

EchoBuilder = Callable[..., Path]


@pytest.fixture(scope="session")
def echo(tmp_path_factory: pytest.TempPathFactory) -> EchoBuilder:
    """Builds the echo application once for each set of arguments."""
    built: dict[Any, Path] = {}

    def build(board: str, toolchain: str = "gcc", **options: Any) -> Path:
        key = (board, toolchain, *sorted(options.items()))
        if key not in built:
            folder = tmp_path_factory.mktemp(f"{board}-{toolchain}")
            built[key] = build_echo(load_board(board), toolchain, folder, **options)
        return built[key]

    return build
