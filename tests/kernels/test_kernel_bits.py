# SPDX-License-Identifier: Apache-2.0
"""Every integer kernel of every set gives the bits of docs/NUMERICS.md 5, and writes nothing else, on the core it is for."""

from __future__ import annotations

import pytest

from colibri.boards import KERNEL_SETS, load_board
from sampled import sampled

from .cases import FORMATS, cases, expected, widened
from .conftest import Programs
from .program import Case, Program

pytestmark = pytest.mark.qemu

BUILDS = [
    ("mps2-an386", "portable", "gcc", "2"),
    *(("mps2-an385", "armv7m", toolchain, opt) for toolchain in ("gcc", "llvm") for opt in ("0", "2")),
    ("mps2-an386", "armv7m", "gcc", "2"),
    *(("mps2-an386", "armv7em", toolchain, opt) for toolchain in ("gcc", "llvm") for opt in ("0", "2")),
    ("mps2-an500", "armv7em", "gcc", "2"),
    ("mps2-an500", "armv7em", "llvm", "2"),
    ("mps2-an505", "armv7em", "gcc", "2"),
    ("mps2-an505", "armv7em", "llvm", "2"),
    *(("mps3-an547", "mve", toolchain, opt) for toolchain in ("gcc", "llvm") for opt in ("0", "2")),
]


def check(program: Program, chosen: list[Case]) -> None:
    for case, found in zip(chosen, program.answers(chosen), strict=True):
        m = case.stored
        for (begin, end), want, got in zip(case.ranges, expected(case), found, strict=True):
            where = f"{m.name} {m.rows} x {m.cols}, rows {begin} to {end}"
            assert want.tobytes() == got.tobytes(), f"{where}: {want} {got}"


@pytest.mark.parametrize("build", sampled((build,) for build in BUILDS))
def test_products(build: tuple[str, ...], programs: Programs) -> None:
    check(programs(*build), [case for spec in FORMATS for case in cases(spec)])


@pytest.mark.parametrize("build", sampled((build,) for build in BUILDS))
def test_widened_rows(build: tuple[str, ...], programs: Programs) -> None:
    check(programs(*build), [case for spec in FORMATS for case in widened(spec)])


def test_every_set_is_tested_on_each_of_its_boards() -> None:
    tested = {(board, kernels) for board, kernels, _, _ in BUILDS}
    assert {kernels for _, kernels in tested} == set(KERNEL_SETS)
    assert all(kernels in KERNEL_SETS[load_board(board).kernels] for board, kernels in tested)
