# SPDX-License-Identifier: Apache-2.0
"""make verify-matrix: what it covers, and that one difference is its answer."""

from __future__ import annotations

import sys

import pytest

from colibri.boards import list_boards

from .matrix import MODELS, QUANTS, Row, exit_code, main, rows, run


def test_every_board_has_a_row_for_each_format_and_a_model_as_q8() -> None:
    found = rows(list_boards(), QUANTS)
    assert {(r.board, r.quant) for r in found} == {(b, q) for b in list_boards() for q in QUANTS}
    models = {r.board: r.model for r in found if r.quant == "q8"}
    assert None not in models.values()
    assert [board for board, model in models.items() if model != MODELS[0]] == ["microbit"]


@pytest.mark.parametrize(
    ("codes", "expected"), [([0, 0], 0), ([0, 1, 5], 1), ([4, 0, 5], 5), ([4], 4), ([0, -9], 5), ([], 2)]
)
def test_a_difference_wins_and_nothing_run_is_no_success(codes: list[int], expected: int) -> None:
    assert exit_code(codes) == expected


def test_each_level_prints_its_lines_and_keeps_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    script = "import sys; level = sys.argv[sys.argv.index('--opt') + 1]; print('at', level); sys.exit(level == '3')"
    codes = run(Row("microbit", "q8", "micro-moe"), ("0", "3"), "gcc", [sys.executable, "-c", script])
    assert codes == [0, 1]
    assert capsys.readouterr().out.splitlines() == ["micro-moe at 0", "micro-moe at 3"]


@pytest.mark.qemu
def test_a_part_of_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--board", "microbit", "--quant", "q8", "--opt", "s", "--toolchain", "gcc"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("micro-moe microbit gcc -Os ")
    assert "bit-exact at" in lines[0]
    assert lines[1:] == ["1 runs of colibri verify, 1 without a difference"]
