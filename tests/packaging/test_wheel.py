# SPDX-License-Identifier: Apache-2.0
"""The wheel holds every file of the packages and their data: compared with git, and with the disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Folder of the checkout, and where the wheel puts it.
PLACES = {
    "scripts/colibri": "colibri",
    "sim/colibri_sim": "colibri_sim",
    "firmware": "colibri/_data/firmware",
    "linker": "colibri/_data/linker",
    "weights": "colibri/_data/weights",
}


def build(root: Path, target: str, out: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)],
        cwd=root,
        check=True,
        capture_output=True,
    )
    (file,) = out.iterdir()
    return file


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}


def in_wheel(path: str) -> str:
    for folder, place in PLACES.items():
        if path.startswith(folder + "/"):
            return place + path[len(folder) :]
    raise AssertionError(path)


def on_disk() -> set[str]:
    found = set()
    for place in PLACES:
        for folder, subfolders, files in os.walk(ROOT / place):
            subfolders[:] = [name for name in subfolders if name != "__pycache__"]
            found |= {(Path(folder) / name).relative_to(ROOT).as_posix() for name in files}
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation: a wheel of pure Python is installed by unpacking it."""
    folder = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_wheel_holds_what_is_on_disk(wheel: Path) -> None:
    assert contents(wheel) == {in_wheel(path) for path in on_disk()}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_git_holds_what_is_on_disk() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *PLACES], cwd=ROOT, check=True, capture_output=True, text=True
    )
    tracked = {path for path in listed.stdout.split("\0") if path}
    assert on_disk() == tracked, "git add the new files, or remove them: the wheel would carry them"


def test_wheel_made_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        # Debian 12's Python 3.11.2 has no filters; where they exist, choosing none is a warning.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    again = build(source, "wheel", tmp_path / "wheel")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def run_installed(folder: Path, code: str) -> str:
    """Run code with the unpacked wheel and the dependencies, and without this checkout (-S reads no .pth file)."""
    dependencies = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return subprocess.run(
        [sys.executable, "-S", "-B", "-c", code],
        cwd=folder.parent,
        env={"PYTHONPATH": os.pathsep.join([str(folder), *dependencies])},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.mark.parametrize("kind", ["firmware", "linker", "weights"])
def test_installed_wheel_finds_its_own_data(unpacked: Path, kind: str) -> None:
    found = run_installed(unpacked, f"from colibri.data import data_path; print(data_path({kind!r}))")
    assert Path(found) == unpacked / "colibri" / "_data" / kind


def test_installed_wheel_carries_the_demo_checkpoint(unpacked: Path) -> None:
    source = ROOT / "weights" / "stories-moe-3m" / "model.safetensors"
    installed = unpacked / "colibri" / "_data" / source.relative_to(ROOT)
    assert source.read_bytes() == installed.read_bytes()


def test_wheel_is_typed_and_carries_the_licence(wheel: Path) -> None:
    assert {"colibri/py.typed", "colibri_sim/py.typed"} <= contents(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())


@pytest.mark.parametrize("name", ["colibri", "colibri-pack"])
def test_command_exists(wheel: Path, name: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = [file for file in archive.namelist() if file.endswith(".dist-info/entry_points.txt")]
        text = archive.read(entry_points).decode()
    (target,) = [line.split(" = ")[1] for line in text.splitlines() if line.startswith(f"{name} = ")]
    module, function = target.split(":")
    code = f"import importlib; assert callable(importlib.import_module({module!r}).{function})"
    subprocess.run([sys.executable, "-c", code], check=True)
