# SPDX-License-Identifier: Apache-2.0
"""Reads the shell commands out of a Markdown page."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(markdown: str) -> list[str]:
    r"""Return each command line of the fenced ``sh`` blocks.

    Comments, blank lines and a leading ``$`` are dropped, a backslash joins lines, runs of spaces become one. Output is
    shown in blocks of another language (``text``), so every line of an ``sh`` block is a command.
    """
    found = []
    for block in _FENCE.findall(markdown):
        for line in block.replace("\\\n", " ").splitlines():
            words = re.sub(r"(^|\s)#.*", "", line).split()
            if words[:1] == ["$"]:
                words = words[1:]
            if words:
                found.append(" ".join(words))
    return found


def make_targets() -> set[str]:
    """Return what the Makefile declares as .PHONY."""
    lines = (ROOT / "Makefile").read_text().splitlines()
    return {name for line in lines if line.startswith(".PHONY:") for name in line.split()[1:]}
