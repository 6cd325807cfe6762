# SPDX-License-Identifier: Apache-2.0
"""Kernels by themselves: counted, named after the set that ran, and never of other bits than the portable ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from cli.command import MIXTRAL, call, validate
from colibri.boards import load_board
from colibri.cli.bench import kernels
from colibri.cli.bench.kernel_cases import OPERATIONS, SHAPES, cases_for
from colibri.data import data_path
from colibri.image.kernel_layouts import LAYOUTS, PORTABLE

Key = tuple[str, str, int | None, int, int]


def document(board: str, *options: str) -> dict[str, Any]:
    result = call("bench", "--kernels", "-b", board, "--json", *options)
    assert result.code == 0, result.err
    validate(result.document, "bench-kernels")
    return dict(result.document)


def rows(found: dict[str, Any], impl: str) -> dict[Key, int]:
    keys = ("op", "dtype", "group", "rows", "cols")
    return {tuple(row[k] for k in keys): row["instructions"] for row in found["kernels"] if row["impl"] == impl}  # type: ignore[misc]


@pytest.mark.qemu
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_the_boards_kernels_stand_beside_the_portable_ones(board: str) -> None:
    found = document(board)
    own, portable = rows(found, load_board(board).kernels), rows(found, "portable")
    assert {op for op, *_ in portable} == {*OPERATIONS, "quantise"}
    assert own.keys() <= portable.keys()
    for q8 in (("product", "q8", None, 256, 128), ("product", "q4", 32, 256, 128)):
        assert own[q8] < portable[q8]
    products = [row for row in found["kernels"] if row["op"] == "product"]
    assert all(row["macs"] == row["rows"] * row["cols"] for row in products)
    assert all(row["instructions_per_mac"] == round(row["instructions"] / row["macs"], 4) for row in products)


@pytest.mark.qemu
def test_a_small_board_takes_smaller_matrices() -> None:
    found = document("microbit")
    assert {row["impl"] for row in found["kernels"]} == {"portable"}
    shapes = {(row["rows"], row["cols"]) for row in found["kernels"] if row["op"] == "product"}
    assert shapes < set(SHAPES)


@pytest.mark.qemu
def test_a_mapped_image_is_given_to_the_program() -> None:
    assert ("product", "q8", None, 256, 128) in rows(document("linux-x86_64"), "portable")


@pytest.mark.qemu
def test_other_bits_than_the_portable_ones_are_a_negative_verdict(tmp_path: Path) -> None:
    real = kernels._counted
    seen: list[str] = []

    def one_bit_off(board: Any, elf: Path, *rest: Any) -> Any:
        counted = real(board, elf, *rest)
        seen.append(elf.parent.name)
        if len(seen) == 1:
            first = counted[0]
            counted[0] = kernels.Counted(first.case, first.blocks, first.quantising, b"\1" + first.written[1:])
        return counted

    with mock.patch.object(kernels, "_counted", one_bit_off):
        result = call("bench", "--kernels", "-b", "mps2-an386")
    assert result.code == 1
    assert "the bits of the portable kernels" in result.error_lines()[0]


@pytest.mark.parametrize(
    "options",
    [
        ("--kernels",),
        ("--kernels", "-b", "mps2-an386", "-b", "mps2-an385"),
        ("--kernels", "-b", "mps2-an386", MIXTRAL),
        ("--kernels", "-b", "mps2-an386", "-q", "q8"),
        ("--kernels", "-b", "mps2-an386", "--toolchain", "all"),
        ("--kernels", "-b", "mps2-an386", "--constant-time"),
        ("--kernels", "-b", "nope"),
        (),
    ],
)
def test_what_belongs_to_a_model_is_refused(options: tuple[Any, ...]) -> None:
    result = call("bench", *options)
    assert result.code == 2
    result.error_lines()


def test_operations_are_numbered_as_in_the_application() -> None:
    text = (data_path("firmware") / "apps" / "kernels" / "kernels.c").read_text()
    (names,) = re.findall(r"enum \{ (PRODUCT[^}]*) \}", text)
    assert tuple(names.lower().split(", ")) == OPERATIONS


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_every_layout_gets_the_same_numbers(layout: Any) -> None:
    ours, portable = cases_for(layout, None), cases_for(PORTABLE, None)
    assert [case.operation for case in ours.cases] == [case.operation for case in portable.cases]
    for a, b in zip(ours.cases, portable.cases, strict=True):
        assert (a.matrix.rows, a.matrix.cols, a.matrix.format) == (b.matrix.rows, b.matrix.cols, b.matrix.format)
        assert np.array_equal(a.x, b.x)
        assert a.offset % 64 == 0
        assert a.offset + a.matrix.bytes <= len(ours.image) or a.operation in OPERATIONS[2:-2]
