# SPDX-License-Identifier: Apache-2.0
"""The templates in firmware/export: NAME.in, in which @WORD@ stands for a value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from xml.sax.saxutils import escape

from colibri.data import data_path

_RAW = {"FILES"}
"""Values that are XML already."""
_CATEGORIES = {".c": "sourceC", ".S": "sourceAsm", ".h": "header"}


def filled(name: str, values: Mapping[str, str], *, xml: bool = False) -> str:
    """The text of a template with every @WORD@ replaced, escaped where it is XML. KeyError is a bug of the caller."""
    text = (data_path("firmware") / "export" / f"{name}.in").read_text("utf-8")

    def value(match: re.Match[str]) -> str:
        word = match[1]
        return escape(values[word]) if xml and word not in _RAW else values[word]

    return re.sub(r"@([A-Z_]+)@", value, text)


def pdsc_files(paths: Iterable[str]) -> list[str]:
    """A component's <file> elements, for paths that need no escape."""
    categories = [(path, _CATEGORIES.get(path[path.rfind(".") :], "other")) for path in paths]
    return [f'<file category="{category}" name="{path}"/>' for path, category in categories]
