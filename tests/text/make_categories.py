# SPDX-License-Identifier: Apache-2.0
"""Write scripts/colibri/text/categories.txt: the general categories as the regular expressions of tokenizers know them.

    python tests/text/make_categories.py

Every code point is asked of the package itself, so that its Unicode version is ours; Python's own unicodedata is older or newer.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

import tokenizers
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

OUT = Path(__file__).resolve().parents[2] / "scripts" / "colibri" / "text" / "categories.txt"
CATEGORIES = (
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "Mn",
    "Mc",
    "Me",
    "Nd",
    "Nl",
    "No",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
)
CATEGORIES += ("Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp")
ALL = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def matched(pattern: str) -> set[str]:
    """The characters that a pattern of one character matches."""
    split = Split(Regex(f"(?:{pattern})+"), "removed")
    return set(ALL) - {c for piece, _ in split.pre_tokenize_str("".join(ALL)) for c in piece}


def main() -> None:
    """Write the file."""
    category = {c: name for name in CATEGORIES for c in matched(rf"\p{{{name}}}")}
    lines = [f"# General categories by tokenizers {tokenizers.__version__}: first and last code point, category; no C"]
    codes = sorted((ord(c), name) for c, name in category.items())
    for (name, _), run in groupby(enumerate(codes), lambda item: (item[1][1], item[1][0] - item[0])):
        members = [code for _, (code, _) in run]
        lines.append(f"{members[0]:04X} {members[-1]:04X} {name}")
    OUT.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
