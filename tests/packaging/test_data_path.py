# SPDX-License-Identifier: Apache-2.0
"""data_path prefers the checkout, falls back to the wheel's copy, and says so when neither is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from colibri import data
from colibri.errors import ToolError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    checkout, wheel_data = tmp_path / "checkout", tmp_path / "site-packages" / "colibri" / "_data"
    (wheel_data / "weights").mkdir(parents=True)
    checkout.mkdir()
    monkeypatch.setattr(data, "_CHECKOUT", checkout)
    monkeypatch.setattr(data, "_WHEEL_DATA", wheel_data)
    return checkout, wheel_data


@pytest.mark.parametrize("kind", ["firmware", "linker", "weights"])
def test_this_checkout_uses_its_own_folders(kind: data.DataKind) -> None:
    assert data.data_path(kind) == ROOT / kind


def test_checkout_comes_before_the_wheels_copy(places: tuple[Path, Path]) -> None:
    checkout, _ = places
    for folder in ["firmware", "weights"]:
        (checkout / folder).mkdir()
    (checkout / "pyproject.toml").touch()
    assert data.data_path("weights") == checkout / "weights"


@pytest.mark.parametrize("present", [[], ["weights"], ["weights", "firmware"]])
def test_folder_that_is_no_checkout_is_passed_over(places: tuple[Path, Path], present: list[str]) -> None:
    checkout, wheel_data = places
    for folder in present:
        (checkout / folder).mkdir()
    assert data.data_path("weights") == wheel_data / "weights"


def test_neither_is_an_error_that_names_the_folder(places: tuple[Path, Path]) -> None:
    with pytest.raises(ToolError, match="'linker'"):
        data.data_path("linker")
