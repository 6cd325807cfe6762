# SPDX-License-Identifier: Apache-2.0
"""Rules that hold for every tracked file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")

SOURCE_SUFFIXES = {".py", ".pyi", ".c", ".h", ".S", ".s", ".ld", ".lds", ".sh", ".toml", ".cmake", ".yml", ".yaml"}
SOURCE_NAMES = {"Makefile", "CMakeLists.txt", "Kconfig", ".ci/run"}

# Inputs that a test reads byte by byte, and files that another program wrote.
NOT_SOURCE = ("weights/", "tests/oracles/data/", "tests/data/")

# A folder of one machine: after these the name of a file or folder follows. The character before it tells a path from
# the root apart from a part of a longer one, such as firmware/tmp/x or $HOME/work/x.
MACHINE_PATH = re.compile(r"(?<![\w.}~*-])/(?:work|root|home|Users|tmp|var/tmp|mnt|opt|srv/[a-z]+/git)/[\w.]")

# Where packages come from is the business of the machine's own apt and pip.
REGISTRY = re.compile(r"\b(?:deb|security|snapshot)\.debian\.org|\bpypi\.org|pythonhosted\.org|registry\.npmjs")

EXAMPLES_HERE = "tests/packaging/test_repository.py"


def tracked(*options: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", *options], cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(path for path in listed.stdout.split("\0") if path and (ROOT / path).is_file())


def is_source(path: str) -> bool:
    named = Path(path).suffix in SOURCE_SUFFIXES or path in SOURCE_NAMES or Path(path).name in SOURCE_NAMES
    return named and not path.startswith(NOT_SOURCE)


def text_of(path: str) -> str | None:
    data = (ROOT / path).read_bytes()
    return None if b"\0" in data else data.decode("utf-8", "replace")


def test_each_source_file_has_an_spdx_line() -> None:
    without = [
        path
        for path in tracked()
        if is_source(path)
        and "SPDX-License-Identifier: Apache-2.0" not in "\n".join((text_of(path) or "").splitlines()[:5])
    ]
    assert without == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see /work/project/x.py", True),
        ("'/root/.cache/pip'", True),
        ("--out=/tmp/a.elf", True),
        ("file:///home/me/x", True),
        ("/var/tmp/x", True),
        ("${TMPDIR:-/tmp}", False),
        ("firmware/tmp/x", False),
        ("$HOME/work/x", False),
        ("either/or, and/or /tmp itself", False),
        ("/usr/include/stdio.h", False),
    ],
)
def test_pattern_for_machine_paths(text: str, found: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) == found


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["path", "registry"])
def test_no_file_names_a_machine(pattern: re.Pattern[str]) -> None:
    named = [
        f"{path}:{number}: {line.strip()}"
        for path in tracked()
        if path != EXAMPLES_HERE
        for number, line in enumerate((text_of(path) or "").splitlines(), 1)
        if pattern.search(line)
    ]
    assert named == []


def test_gitignore_patterns_are_anchored() -> None:
    lines = (ROOT / ".gitignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in patterns if not line.startswith("/")] == ["__pycache__/"]


def test_there_is_one_gitignore() -> None:
    assert [path for path in tracked() if Path(path).name == ".gitignore"] == [".gitignore"]


def test_no_source_file_is_ignored() -> None:
    folders = ["scripts", "sim", "firmware", "linker", "weights", "tests", "docs"]
    ignored = tracked("--others", "--ignored", "--exclude-standard", "--", *folders)
    assert [path for path in ignored if "__pycache__" not in path.split("/")] == []


def test_nothing_tracked_is_ignored() -> None:
    assert tracked("--cached", "--ignored", "--exclude-standard") == []
