# SPDX-License-Identifier: Apache-2.0
"""--work, boards of one's own, and builds and packs that come out the same anywhere."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.command import MIXTRAL, ROOT, call, contents
from colibri.cli import workflow
from colibri.cli.options import NO_SETTINGS

LINUX, AN547 = "linux-x86_64", "mps3-an547"


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that are packed from now on."""
    folders: list[Path] = []
    pack = workflow.pack

    def counted(checkpoint: object, board: object, settings: object, out: Path, *rest: object) -> object:
        folders.append(out)
        return pack(checkpoint, board, settings, out, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(workflow, "pack", counted)
    return folders


def use(checkpoint: Path, board: str, work: Path, **values: object) -> None:
    with workflow.packed(checkpoint, board, NO_SETTINGS | values, work) as folder:
        assert folder.path == work


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.parametrize(
    "change",
    [
        lambda c: edit(c / "config.json", '"rms_norm_eps": ', '"rms_norm_eps": 2'),
        lambda c: _flip(c / "model.safetensors"),
        lambda c: edit(c / "tokenizer.json", '"model"', ' "model"'),
        lambda c: (c / "generation_config.json").write_text('{"temperature": 0.5}'),
        lambda c: (c / "generation_config.json").write_text('{"eos_token_id": 7}'),
    ],
    ids=["config", "weights", "tokenizer", "sampling", "end"],
)
def test_work_is_packed_anew_where_the_checkpoint_changed(
    change: Callable[[Path], object], bytes_checkpoint: Path, packs: list[Path], tmp_path: Path
) -> None:
    checkpoint, work = tmp_path / "ckpt", tmp_path / "work"
    shutil.copytree(bytes_checkpoint, checkpoint)
    use(checkpoint, LINUX, work)
    use(checkpoint, LINUX, work)
    assert packs == [work]
    change(checkpoint)
    use(checkpoint, LINUX, work)
    assert packs == [work, work]


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "values",
    [
        {"quant": "q4"},
        {"kv": "q8"},
        {"max_seq": 64},
        {"weights_addr": 0x28001000},
        {"expert_align": "sector"},
        {"prefix": "x"},
    ],
    ids=str,
)
def test_work_is_packed_anew_where_an_option_changed(
    values: dict[str, object], packs: list[Path], tmp_path: Path
) -> None:
    use(MIXTRAL, AN547, tmp_path / "work")
    use(MIXTRAL, AN547, tmp_path / "work", **values)
    use(MIXTRAL, AN547, tmp_path / "work", **values)
    assert len(packs) == 2


def test_work_is_packed_anew_for_another_board_place_or_damage(packs: list[Path], tmp_path: Path) -> None:
    work, moved = tmp_path / "work", tmp_path / "mixtral"
    use(MIXTRAL, AN547, work)
    use(MIXTRAL, LINUX, work)
    shutil.copytree(MIXTRAL, moved)
    use(moved, LINUX, work)
    (work / "manifest.json").write_text("{}")
    use(moved, LINUX, work)
    (work / "model.bin").unlink()
    use(moved, LINUX, work)
    assert len(packs) == 5
    use(moved, LINUX, work, quant="q8", kv="f32", max_seq=128)  # the defaults, said
    assert len(packs) == 5


def test_work_with_other_files_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    assert call("audit", MIXTRAL, "-b", LINUX, "--work", tmp_path).code == 6
    assert contents(tmp_path) == {"mine": b"mine"}


def own_board(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "my_board.toml"
    shutil.copy(ROOT / "linker" / "boards" / f"{AN547}.toml", path)
    shutil.copy(ROOT / "firmware" / "boards" / AN547 / "board.c", folder / "my_board.c")
    edit(path, f'name = "{AN547}"', 'name = "my_board"')
    edit(path, f'"boards/{AN547}/board.c"', '"./my_board.c"')
    return path


def test_a_board_of_ones_own_builds_from_its_folder(tmp_path: Path) -> None:
    toml, out = own_board(tmp_path / "mine"), tmp_path / "out"
    assert call("pack", MIXTRAL, "-b", toml, "-o", out).code == 0
    result = call("build", out, "--app", "lib", "--opt", "0")
    assert result.code == 0, result.err
    edit(toml, "Arm MPS3 AN547", "another title")
    result = call("build", out, "--app", "lib")
    assert result.code == 3
    assert "pack the checkpoint again" in result.error_lines()[1]


def test_packing_twice_gives_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From another place, too: only origin.json names places."""
    elsewhere = tmp_path / "elsewhere" / "mixtral"
    shutil.copytree(MIXTRAL, elsewhere)
    assert call("pack", MIXTRAL, "-b", AN547, "-o", tmp_path / "a").code == 0
    monkeypatch.chdir(elsewhere.parent)
    assert call("pack", "mixtral", "-b", AN547, "-o", "b").code == 0
    first, second = contents(tmp_path / "a"), contents(elsewhere.parent / "b")
    assert json.loads(second.pop("origin.json"))["checkpoint"] == str(elsewhere)
    assert json.loads(first.pop("origin.json"))["checkpoint"] == str(MIXTRAL)
    assert first == second
    for name, data in first.items():
        assert str(tmp_path).encode() not in data, name
        assert str(ROOT).encode() not in data, name


@pytest.mark.qemu
@pytest.mark.parametrize("toolchain", ["gcc", "llvm"])
def test_building_twice_gives_the_same_files(toolchain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In folders of other names, from other current folders, with another folder for temporary files."""
    first, second = tmp_path / "a", tmp_path / 'b=ü "c\\ d'
    assert call("pack", MIXTRAL, "-b", AN547, "-o", first).code == 0
    shutil.copytree(first, second)
    monkeypatch.chdir("/")
    assert call("build", first, "--toolchain", toolchain).code == 0
    (tmp_path / "t").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    monkeypatch.chdir(tmp_path)
    result = call("build", second.name, "--toolchain", toolchain)
    assert result.code == 0, result.err
    assert contents(first) == contents(second)
    elf = (first / f"generate-{toolchain}" / "firmware.elf").read_bytes()
    for path in (tmp_path, ROOT, Path.home()):
        assert os.fsencode(path) + b"/" not in elf
