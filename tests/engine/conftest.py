# SPDX-License-Identifier: Apache-2.0
"""Each tiny model is compiled once a session."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for verify.random_models
from engine_tiny import Engine, Tiny, compile_library, tiny_of
from every_axis import EveryAxis

EVERY = {f"every_{kv}": EveryAxis(kv) for kv in ("f32", "f16", "q8")}


def model_of(name: str) -> Tiny | EveryAxis:
    return EVERY[name] if name in EVERY else tiny_of(name)


@pytest.fixture(scope="session")
def library_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ctypes.CDLL]:
    built: dict[tuple[str, ...], ctypes.CDLL] = {}

    def build(name: str, compiler: str = "gcc", *flags: str) -> ctypes.CDLL:
        key = (name, compiler, *flags)
        if key not in built:
            folder: Path = tmp_path_factory.mktemp(name)
            built[key] = compile_library(model_of(name), folder, compiler, *flags)
        return built[key]

    return build


@pytest.fixture
def engine_of(library_of: Callable[..., ctypes.CDLL]) -> Callable[..., Engine]:
    return lambda name, *build: Engine(model_of(name), library_of(name, *build))
