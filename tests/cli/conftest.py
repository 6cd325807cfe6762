# SPDX-License-Identifier: Apache-2.0
"""Folders packed and built once a session. Tests that change one take a copy of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from cli.command import MIXTRAL, call

Folders = Callable[[str], Path]


@pytest.fixture(scope="session")
def bytes_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Mixtral with a tokenizer of single bytes: most characters above ASCII take several tokens."""
    folder = tmp_path_factory.mktemp("bytes") / "tiny é"
    shutil.copytree(MIXTRAL, folder)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    # 96 ids: some letters of ASCII, and bytes that begin and continue UTF-8 sequences
    wanted = [c for c in alphabet if ord(c) >= 0x80][:56] + [c for c in alphabet if "!" <= c <= "z"][:40]
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(wanted)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), "utf-8")
    return folder


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """The tiny Mixtral, packed for a board."""
    folders: dict[str, Path] = {}

    def pack(board: str) -> Path:
        if board not in folders:
            folders[board] = tmp_path_factory.mktemp(board) / "packed"
            assert call("pack", MIXTRAL, "-b", board, "-o", folders[board]).code == 0
        return folders[board]

    return pack


@pytest.fixture(scope="session")
def built(packed: Folders, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The ELF of an application for a board, in a copy of its packed folder."""
    elfs: dict[tuple[str, str], Path] = {}

    def build(board: str, app: str = "generate") -> Path:
        if (board, app) not in elfs:
            folder = tmp_path_factory.mktemp(app) / "packed"
            shutil.copytree(packed(board), folder)
            result = call("build", folder, "--app", app)
            assert result.code == 0, result.err
            elfs[board, app] = folder / f"{app}-gcc" / "firmware.elf"
        return elfs[board, app]

    return build


@pytest.fixture
def no_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Have the commands that build take the ELFs given by application, or an empty file."""
    dummy = tmp_path / "dummy.elf"

    def use(**elfs: Path) -> None:
        dummy.touch()
        monkeypatch.setattr("colibri.cli.targets.built", lambda folder, board, app, *rest: elfs.get(app, dummy))

    return use
