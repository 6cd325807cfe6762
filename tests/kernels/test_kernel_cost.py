# SPDX-License-Identifier: Apache-2.0
"""Instructions a multiply-accumulate over 256 x 128, scales and stores included: what was measured, and 2 % more fails.

What the kernel does for the vector alone, quantising it in its own form, is counted by itself, for each of its elements.
"""

from __future__ import annotations

import numpy as np
import pytest

from .cases import drawn, whole
from .conftest import Programs
from .program import Case, F

pytestmark = pytest.mark.qemu

ROWS, COLS = 256, 128
SPECS = ("q8", "q8:32", "q8:128", "q4:32", "q4:64", "q4:128")
PRODUCT = {
    "armv7em": (0.926, 1.130, 0.972, 1.268, 1.162, 1.109),
    "mve": (0.159, 0.253, 0.1915, 0.279, 0.242, 0.2235),
    "armv7m": (2.447, 7.132, 3.431, 2.181, 2.181, 2.181),
}
"""By kernel set, in the order of SPECS."""
QUANTISE = {
    "armv7em": (8.1, 9.5, 8.3, 9.4, 8.7, 8.4),
    "mve": (2.8, 3.5, 2.8, 2.8, 2.8, 2.8),
    "armv7m": (102.0, 111.8, 102.2, 104.1, 104.1, 104.1),
}
BOUND = {
    "armv7em": (0.94, 9, 9, 1.6, 1.6, 1.6),
    "mve": (0.16, 9, 9, 0.3, 0.3, 0.3),
    "armv7m": (2.5, 9, 9, 2.5, 2.5, 2.5),
}
"""What each set must not exceed, whatever was measured."""
SLACK = 1.02


@pytest.mark.parametrize("toolchain", ["gcc", "llvm"])
@pytest.mark.parametrize(
    ("board", "kernels"),
    [("mps2-an386", "armv7em"), ("mps2-an505", "armv7em"), ("mps3-an547", "mve"), ("mps2-an385", "armv7m")],
)
def test_instructions(board: str, kernels: str, toolchain: str, programs: Programs) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal(COLS).astype(F)
    cases = [Case(drawn(rng, spec, ROWS, COLS), x, whole(ROWS)) for spec in SPECS]
    found = programs(board, kernels, toolchain).instructions(cases)
    for i, (quantise, product) in enumerate(found):
        assert product / (ROWS * COLS) <= min(PRODUCT[kernels][i] * SLACK, BOUND[kernels][i]), SPECS[i]
        assert quantise / COLS <= QUANTISE[kernels][i] * SLACK, SPECS[i]


@pytest.mark.parametrize("spec", SPECS)
def test_the_count_does_not_depend_on_the_data(spec: str, programs: Programs) -> None:
    """docs/NUMERICS.md 10, for the products alone."""
    rng = np.random.default_rng(6)
    cases = [
        Case(drawn(rng, spec, 9, 77), rng.standard_normal(77).astype(F) * F(2.0**e), whole(9)) for e in (0, -20, 30)
    ]
    cases.append(Case(drawn(rng, spec, 9, 77, extreme=True), np.zeros(77, F), whole(9)))
    counts = programs("mps2-an386", "armv7em").instructions(cases)
    assert len({product for _, product in counts}) == 1
    assert len({quantise for quantise, _ in counts}) == 1
