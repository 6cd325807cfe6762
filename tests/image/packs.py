# SPDX-License-Identifier: Apache-2.0
"""Packed folders and built applications for tests: each is made once a session and never changed; damage a `private` copy."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file, save_file

from colibri.boards import load_board
from colibri.build.firmware import App, BuildOptions, build
from colibri.cli.workflow import Checkpoint, board_of, pack, read_checkpoint
from colibri.folder import Folder, read_folder
from colibri.layout.settings import Settings
from colibri.quantise import Policy
from colibri_sim.vectors import Prompt

ROOT = Path(__file__).parents[2]
ORACLES = ROOT / "tests" / "oracles" / "data"
NAMES = sorted(path.parent.name for path in ORACLES.glob("*/golden.npz"))
DEMO = "stories-moe-3m"
IDS = (1, 5, 2, 7, 3, 11, 4, 6)

Edit = Callable[[dict[str, npt.NDArray[Any]]], None]


def path_of(name: str) -> Path:
    return ROOT / "weights" / DEMO if name == DEMO else ORACLES / name


@cache
def checkpoint(name: str) -> Checkpoint:
    return read_checkpoint(path_of(name))


def settings(quant: str = "q8", **others: Any) -> Settings:
    return Settings(policy=Policy.parse(quant), **others)


@dataclass
class Packs:
    """Folders and builds by what decides them."""

    base: Path
    _folders: dict[Any, Folder] = field(default_factory=dict)
    _builds: dict[Any, Path] = field(default_factory=dict)
    _number: Iterator[int] = field(default_factory=count)

    def new(self) -> Path:
        """A path where nothing is yet."""
        return self.base / f"{next(self._number)}"

    def folder(
        self, name: str, quant: str = "q8", board: str = "linux-x86_64", ids: tuple[int, ...] = IDS, **others: Any
    ) -> Folder:
        key = (name, quant, board, ids, tuple(sorted(others.items())))
        if key not in self._folders:
            self._folders[key] = self.pack(checkpoint(name), settings(quant, **others), board, ids)
        return self._folders[key]

    def pack(
        self, source: Checkpoint, chosen: Settings, board: str = "linux-x86_64", ids: tuple[int, ...] = IDS
    ) -> Folder:
        out = self.new()
        pack(source, load_board(board), chosen, out, (Prompt(ids),))
        return read_folder(out)

    def private(self, folder: Folder) -> Folder:
        """A copy without its builds."""
        out = self.new()
        shutil.copytree(folder.path, out, ignore=shutil.ignore_patterns("*-gcc*", "*-llvm*"))
        return read_folder(out)

    def built(self, folder: Folder, app: App = "verify", toolchain: str = "gcc", opt: str = "1") -> Path:
        """The folder of a build; one of a mapped image serves every folder of the same configuration.

        opt 1 compiles fastest of the levels that optimise; tests of what users get ask for 2.
        """
        options = BuildOptions(app=app, toolchain=toolchain, opt=opt)  # type: ignore[arg-type]  # test's literals
        board = board_of(folder)
        same = folder.manifest["config_hash"] if board.image == "mapped" else folder.path
        key = (board.name, same, app, toolchain, opt)
        if key not in self._builds:
            self._builds[key] = build(folder, board, options)
        return self._builds[key]

    def doctored(self, name: str, edit: Edit, config: Callable[[str], str] = lambda text: text) -> Checkpoint:
        """A copy of a single-file checkpoint with its tensors (Hugging Face names) edited."""
        out = self.new()
        shutil.copytree(path_of(name), out)
        tensors = {key: np.array(value) for key, value in load_file(out / "model.safetensors").items()}
        edit(tensors)
        save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
        (out / "config.json").write_text(config((out / "config.json").read_text()))
        return read_checkpoint(out)


_shared: list[Packs] = []


@pytest.fixture(scope="session")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Packs:
    """One for the whole session, also where several folders' conftest import this fixture."""
    if not _shared:
        _shared.append(Packs(tmp_path_factory.mktemp("packs")))
    return _shared[0]
