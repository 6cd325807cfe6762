# SPDX-License-Identifier: Apache-2.0
"""Each command shown in README.md is one that something runs; the Makefile does what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import readme

# A command of the README, and what runs it. A new one is added here together with its test; those of `colibri` itself are
# all run by test_readme_commands.py.
KNOWN = {
    "make demo": "tests/packaging/bare_debian.sh",
    "make test": ".ci/run",
    "make setup": ".ci/run",
}


def test_every_readme_command_is_known() -> None:
    shown = readme.commands((readme.ROOT / "README.md").read_text())
    assert [line for line in shown if line not in KNOWN and not line.startswith(".venv/bin/colibri ")] == []


def test_what_runs_a_readme_command_exists() -> None:
    assert [file for file in KNOWN.values() if not (readme.ROOT / file).is_file()] == []


def test_every_make_command_shown_is_a_target() -> None:
    shown = [line.split()[1] for line in KNOWN if line.startswith("make ")]
    for page in [readme.ROOT / "README.md", *sorted((readme.ROOT / "docs").glob("*.md"))]:
        shown += [line.split()[1] for line in readme.commands(page.read_text()) if line.startswith("make ")]
    assert set(shown) <= readme.make_targets()


def test_commands_are_read_out_of_sh_blocks_only() -> None:
    page = "\n".join(
        [
            "```sh",
            "$ make  demo      # a comment",
            "# another",
            "colibri plan weights/x \\",
            "    -b microbit",
            "```",
            "```text",
            "not a command",
            "```",
            "    nor this",
            "```sh",
            "make test",
            "```",
        ]
    )
    assert readme.commands(page) == ["make demo", "colibri plan weights/x -b microbit", "make test"]


def test_make_help_names_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=readme.ROOT, check=True, capture_output=True, text=True).stdout
    assert {target for target in readme.make_targets() if f"make {target}" not in shown} == {"help"}


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("demo", ".venv/bin/colibri demo"),
        ("test", '.venv/bin/python -m pytest -n auto --dist loadfile -m "(qemu or fuzz) and not slow"'),
        ("setup", "sh scripts/setup.sh test"),
        ("lint", ".venv/bin/python -m mypy"),
        ("fuzz", "PYTHONPATH=tests .venv/bin/python -m fuzz.run --seconds 600 "),
        ("bench", ".venv/bin/python -m colibri.cli.main bench weights/stories-moe-3m"),
    ],
)
def test_make_target_ends_with_its_command(target: str, command: str) -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=readme.ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert planned.stdout.splitlines()[-1] == command
