# SPDX-License-Identifier: Apache-2.0
"""Every `colibri` command of README.md is run, in the order in which a reader meets it, and succeeds; its C program compiles."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import readme

PAGE = (readme.ROOT / "README.md").read_text()
COLIBRI = ".venv/bin/colibri"


def own_commands() -> list[str]:
    return [line for line in readme.commands(PAGE) if line.startswith(COLIBRI)]


@pytest.fixture(scope="module")
def reader_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the checkout to a reader's commands, so that `out/` is not written into the real one."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "weights").symlink_to(readme.ROOT / "weights")
    return folder


@pytest.fixture(scope="module")
def packed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "stories"
    words = [
        str(Path(sys.executable).parent / "colibri"),
        "pack",
        "weights/stories-moe-3m",
        "-b",
        "linux-x86_64",
        "-o",
        str(folder),
    ]
    subprocess.run(words, cwd=readme.ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.qemu
def test_every_colibri_command_of_the_readme_succeeds(reader_folder: Path) -> None:
    commands = own_commands()
    assert len(commands) >= 10
    printed: dict[str, str] = {}
    for line in commands:
        words = [str(Path(sys.executable).parent / "colibri"), *shlex.split(line)[1:]]
        result = subprocess.run(words, cwd=reader_folder, capture_output=True, text=True, timeout=1800, check=False)
        assert result.returncode == 0, f"{line}\n{result.stdout}\n{result.stderr}"
        printed[line.split()[1]] = result.stdout
    assert "bit-exact" in printed["verify"]
    assert printed["run"].startswith("One day, a little girl named Lily")
    assert "FAIL" not in printed["audit"]
    for name in ("firmware.elf", "firmware.bin", "firmware.hex", "all.hex"):
        assert (reader_folder / "out" / "stories" / "generate-gcc" / name).stat().st_size > 0


def test_the_c_program_of_the_readme_compiles_strictly(packed_folder: Path, tmp_path: Path) -> None:
    program = re.search(r"```c\n(.*?)```", PAGE, re.DOTALL)
    assert program is not None
    (tmp_path / "program.c").write_text(program[1])
    command = [
        "gcc",
        "-std=c11",
        "-pedantic",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wshadow",
        "-Werror",
        "-fsyntax-only",
    ]
    includes = [f"-I{packed_folder}", f"-I{readme.ROOT / 'firmware' / 'include'}"]
    result = subprocess.run(
        [*command, *includes, "program.c"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
