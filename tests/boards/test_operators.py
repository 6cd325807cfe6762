# SPDX-License-Identifier: Apache-2.0
"""A token's events become operators and layers; what does not fit together is no verdict."""

from __future__ import annotations

import re

import pytest

from colibri.data import data_path
from colibri.errors import NoVerdict
from colibri_sim.operators import BEGIN, END_OF_TOKEN, attribute
from colibri_sim.qemu.counter import Event
from colibri_sim.qemu.frames import Walk

RUN, SLICE = "colibri_stage_run", "run_slice"
WALK = [Walk("embed", 0), Walk("q", 0), Walk("q", 1)]
EVENTS: list[Event] = [
    *((BEGIN, 100), (SLICE, 103), (RUN, 110), (SLICE, 130), (RUN, 131), (SLICE, 231), (RUN, 232), (SLICE, 333)),
    (END_OF_TOKEN, 340),
]


def tokens(events: list[Event], n_tokens: int = 1) -> object:
    return attribute(events, WALK, n_tokens, stage_run=RUN, run_slice=SLICE)


def test_every_stage_of_the_engine_has_its_name() -> None:
    firmware = data_path("firmware")
    stages = re.findall(r"^    COLIBRI_STAGE_(\w+),", (firmware / "include/colibri/state.h").read_text(), re.MULTILINE)
    named = re.findall(r'\[COLIBRI_STAGE_(\w+)\] = "(\w+)"', (firmware / "apps/bench.c").read_text())
    assert named == [(stage, stage.lower()) for stage in stages]


def test_instructions_go_to_operators_and_layers() -> None:
    (token,) = attribute(EVENTS, WALK, 1, stage_run=RUN, run_slice=SLICE)
    assert token.instructions == 240
    assert token.operators == {"embed": 20, "q": 201, "walk": 19}
    assert token.layers == (100, 101)


@pytest.mark.parametrize(
    ("events", "n_tokens", "problem"),
    [
        (EVENTS, 2, "1 begun, 1 ended"),
        (EVENTS[:-1], 1, "1 begun, 0 ended"),
        (EVENTS[:6] + EVENTS[8:], 1, "a token of 3 stages, got 2"),
        (EVENTS[:3] + EVENTS[4:], 1, "colibri_stage_run after colibri_stage_run"),
    ],
)
def test_events_that_do_not_fit_are_no_verdict(events: list[Event], n_tokens: int, problem: str) -> None:
    with pytest.raises(NoVerdict, match=problem):
        tokens(events, n_tokens)
