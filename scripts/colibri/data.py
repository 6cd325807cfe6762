# SPDX-License-Identifier: Apache-2.0
"""Where the files that are not Python are: the engine's sources, the boards, the demo checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from colibri.errors import ToolError

__all__ = ["DataKind", "data_path"]

DataKind = Literal["firmware", "linker", "weights"]

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent
_WHEEL_DATA = _PACKAGE / "_data"


def data_path(kind: DataKind) -> Path:
    """Return the folder ``kind``: the checkout's where there is one, else the copy that the wheel carries.

    The checkout comes first so that an edited kernel is what gets built.
    """
    checkout = _CHECKOUT / kind
    if _is_checkout(_CHECKOUT) and checkout.is_dir():
        return checkout
    installed = _WHEEL_DATA / kind
    if installed.is_dir():
        return installed
    raise ToolError(
        f"colibri's own folder '{kind}'",
        expected=f"a checkout, or the installed copy {installed}",
        got="neither",
        hint="the installation is incomplete: pip install --force-reinstall colibri-firmware, or make setup",
    )


def _is_checkout(folder: Path) -> bool:
    return (folder / "pyproject.toml").is_file() and (folder / "firmware").is_dir()
