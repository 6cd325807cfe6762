# SPDX-License-Identifier: Apache-2.0
"""Every vector kernel of every set gives the golden model's bits, and writes nothing else, on the core it is for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from colibri_sim.qemu.frames import END, encode
from colibri_sim.qemu.runner import run
from sampled import sampled

from .conftest import Programs
from .program import F, Program
from .test_kernel_bits import BUILDS
from .vectors import KERNELS, Call, Kv, calls, exp_calls, float_products, half_calls, kv_calls

pytestmark = pytest.mark.qemu

# The levels change no assembly, and the portable sources of each are under test with the engine.
CHOSEN = [build for build in BUILDS if build[3] == "2"]


def check(program: Program, chosen: Iterable[Call]) -> None:
    chosen = list(chosen)
    requests = [encode("K", np.array(c.words, np.uint32).tobytes() + c.before.tobytes()) for c in chosen]
    frames = list(run(program.board, program.elf, None, b"".join(requests) + END, 300.0))
    assert len(frames) == len(chosen)
    for one, frame in zip(chosen, frames, strict=True):
        got = np.frombuffer(frame.payload, F)
        at = np.flatnonzero(got.view(np.uint32) != one.after.view(np.uint32))
        assert at.size == 0, f"{one}: word {at[0]}: {one.after[at[0]]!r}, not {got[at[0]]!r}"


@pytest.mark.parametrize("build", sampled((build,) for build in CHOSEN))
def test_vectors(build: tuple[str, ...], programs: Programs) -> None:
    check(programs(*build, main="vectors.c"), [*calls(), *float_products(), *exp_calls()])


@pytest.mark.parametrize(("build", "kv"), sampled((build, kv) for kv in ("f32", "f16", "q8") for build in CHOSEN))
def test_the_kv_cache(build: tuple[str, ...], kv: Kv, programs: Programs) -> None:
    check(programs(*build, main="vectors.c", kv=kv), [*kv_calls(kv), *(half_calls() if kv == "f16" else ())])


def test_every_kernel_is_called() -> None:
    called = {c.words[0] for kv in ("f32", "q8") for c in (*calls(), *float_products(), *kv_calls(kv))}  # type: ignore[arg-type]  # of two
    assert called == set(range(len(KERNELS)))
