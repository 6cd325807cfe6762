# SPDX-License-Identifier: Apache-2.0
"""MACs of a token by operator, from a plan."""

from __future__ import annotations

import pytest

from colibri.cli.bench.macs import attention_macs, macs


@pytest.mark.parametrize(
    ("window", "chunk", "at", "seen"), [(0, 0, 9, 10), (4, 0, 2, 3), (4, 0, 9, 4), (0, 4, 3, 4), (0, 4, 4, 1)]
)
def test_attention_sees_what_window_and_chunk_leave(window: int, chunk: int, at: int, seen: int) -> None:
    plan = {"operator_macs": {"q": 7}, "attention_macs": [[100, window, chunk], [10, 0, 0]]}
    assert attention_macs(plan, at) == 100 * seen + 10 * (at + 1)
    assert macs(plan, at) == {"q": 7, "attention": attention_macs(plan, at)}
