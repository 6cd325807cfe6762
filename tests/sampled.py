# SPDX-License-Identifier: Apache-2.0
"""Part of a parametrisation: the suite runs it every time, `make test-all` the rest too."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def chosen(rows: Iterable[tuple[Any, ...]], always: Collection[tuple[Any, ...]]) -> list[Any]:
    """The rows; those that are not in `always` are marked slow."""
    return [pytest.param(*row, marks=() if row in always else pytest.mark.slow) for row in rows]


def sampled(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The rows; of each four the second and third are marked slow, so that what takes turns within a pair still does."""
    rows = list(rows)
    return chosen(rows, [row for i, row in enumerate(rows) if i % 4 in (0, 3)])
