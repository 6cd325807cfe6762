# SPDX-License-Identifier: Apache-2.0
"""What a target may answer instead of the truth: a verdict only where there is one to give. No target runs here."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from colibri.errors import NoVerdict
from colibri_sim.qemu.frames import Frame
from colibri_sim.vectors import to_hex
from colibri_sim.verify import ERR_RANGE, Verdict, verify

LOGITS = np.array([[1.0, -2.0, 0.5], [0.25, 4.0, -0.0]], dtype=np.float32)
CRCS = [[11, 12], [21, 22]]
TRACE = [[None, "embed", None], [0, "q", None]]
PROMPT = {"text": None, "ids": [7, 8], "range_at": None, "logits": [to_hex(x) for x in LOGITS], "experts": [[], []]}
VECTORS: dict[str, Any] = {"schema_version": 1, "trace": TRACE, "prompts": [{**PROMPT, "trace_crc32": CRCS}]}
RANGE = {"text": None, "ids": [7, 8], "range_at": 1, "logits": [], "experts": [], "trace_crc32": []}


def trace(position: int, crcs: Iterable[int] | None = None) -> Frame:
    words = list(CRCS[position] if crcs is None else crcs)
    return Frame("T", struct.pack(f"<II{len(words)}I", position, len(words), *words))


def logits(position: int, values: Any = None) -> Frame:
    return Frame("L", struct.pack("<I", position) + (LOGITS[position] if values is None else values).tobytes())


def full(values: Any = None) -> Frame:
    return Frame("F", (LOGITS[1] if values is None else values).tobytes())


def status(code: int) -> Frame:
    return Frame("S", struct.pack("<i", code))


GOOD = [trace(0), logits(0), trace(1), logits(1), full(), status(0)]


def answer(frames: list[Frame], vectors: dict[str, Any] = VECTORS) -> Verdict:
    return verify(lambda request: iter(frames), vectors, None)


def place(verdict: Verdict) -> tuple[Any, ...]:
    d = verdict.first_difference
    assert d is not None
    return d.prompt, d.position, d.layer, d.tensor, d.element, d.expected_bits, d.got_bits


def test_the_right_answer_is_exact() -> None:
    verdict = answer(GOOD)
    assert verdict.bit_exact
    assert verdict.positions == 2


@pytest.mark.parametrize("n", range(len(GOOD)))
def test_an_answer_that_ends_early_is_no_verdict(n: int) -> None:
    with pytest.raises(NoVerdict) as caught:
        answer(GOOD[:n])
    assert caught.value.exit_code == 5
    assert caught.value.got == "the end of the response"


@pytest.mark.parametrize("n", range(len(GOOD)))
def test_a_message_left_out_is_never_exact(n: int) -> None:
    with pytest.raises(NoVerdict):
        answer([*GOOD[:n], *GOOD[n + 1 :]])


@pytest.mark.parametrize("n", range(len(GOOD)))
def test_a_message_sent_twice_is_never_exact(n: int) -> None:
    with pytest.raises(NoVerdict):
        answer([*GOOD[: n + 1], *GOOD[n:]])


def test_a_program_that_fails_after_its_last_answer_is_no_verdict() -> None:
    def frames(request: bytes) -> Iterator[Frame]:
        yield from GOOD
        raise NoVerdict("firmware.elf", expected="status 0", got="status 3", hint="")

    with pytest.raises(NoVerdict, match="status 3"):
        verify(frames, VECTORS, None)


@pytest.mark.parametrize(
    ("at", "frame"),
    [
        (0, trace(1)),
        (1, logits(1)),
        (0, trace(0, [11])),
        (0, trace(0, [11, 12, 13])),
        (1, logits(0, LOGITS[0, :2])),
        (4, full(LOGITS[1, :2])),
        (1, Frame("L", b"\0\0\0\0\0")),
        (0, Frame("T", b"\0\0\0\0\2\0\0\0")),
        (0, Frame("Z", b"")),
        (3, Frame("K", struct.pack("<i", 1))),
    ],
)
def test_a_malformed_message_is_no_verdict(at: int, frame: Frame) -> None:
    with pytest.raises(NoVerdict):
        answer([*GOOD[:at], frame, *GOOD[at + 1 :]])


def test_a_crc_names_the_tensor() -> None:
    assert place(answer([trace(0), logits(0), trace(1, [21, 23]), *GOOD[3:]])) == (0, 1, 0, "q", None, None, None)


def test_logits_name_the_element_even_when_every_crc_is_right() -> None:
    wrong = LOGITS[1].copy()
    wrong[2] = 0.0  # -0.0 is another number here
    assert place(answer([*GOOD[:3], logits(1, wrong), *GOOD[4:]])) == (
        *(0, 1, None, "logits", 2),
        *("0x80000000", "0x00000000"),
    )
    assert place(answer([*GOOD[:4], full(wrong), GOOD[5]]))[3:5] == ("logits of colibri_forward", 2)


def test_two_nans_of_different_bits_differ() -> None:
    nan = np.array([0x7FC00000, 0x7FC00001, 0], dtype=np.uint32).view(np.float32)
    other = np.array([0x7FC00000, 0x7FC00002, 0], dtype=np.uint32).view(np.float32)
    prompt = {**PROMPT, "trace_crc32": CRCS, "logits": [to_hex(nan), to_hex(nan)]}
    vectors = {**VECTORS, "prompts": [prompt]}
    assert answer([trace(0), logits(0, nan), trace(1), logits(1, nan), full(nan), status(0)], vectors).bit_exact
    assert place(answer([trace(0), logits(0, other), *GOOD[2:]], vectors))[4] == 1


@pytest.mark.parametrize("n", [0, 2])
def test_a_step_that_fails_shows_its_status(n: int) -> None:
    code = struct.pack("<i", -7)
    bits = f"{struct.unpack('<I', code)[0]:#010x}"
    assert place(answer([*GOOD[:n], status(-7)])) == (0, n // 2, None, "status", 0, "0x00000000", bits)


def test_a_forward_that_fails_shows_its_status() -> None:
    assert place(answer([*GOOD[:4], status(-7)]))[:5] == (0, 1, None, "status", 0)
    assert place(answer([*GOOD[:5], status(-7)]))[:5] == (0, 1, None, "status", 0)


def test_out_of_range_at_the_same_position_is_exact() -> None:
    vectors = {**VECTORS, "prompts": [RANGE]}
    assert answer([trace(0), logits(0), status(ERR_RANGE)], vectors).bit_exact


@pytest.mark.parametrize(
    ("frames", "position"),
    [
        ([status(ERR_RANGE)], 0),
        ([trace(0), logits(0), status(-7)], 1),
        ([trace(0), logits(0), status(0)], 1),
        (GOOD, 2),
    ],
)
def test_out_of_range_elsewhere_or_not_at_all_differs(frames: list[Frame], position: int) -> None:
    found = place(answer(frames, {**VECTORS, "prompts": [RANGE]}))
    assert found[:5] == (0, position, None, "status", 0)
    assert found[5] == f"{struct.unpack('<I', struct.pack('<i', ERR_RANGE))[0]:#010x}"


def test_the_second_prompt_is_compared_too() -> None:
    vectors = {**VECTORS, "prompts": [*VECTORS["prompts"], {**PROMPT, "trace_crc32": [[11, 13], [21, 22]]}]}
    verdict = answer([*GOOD, *GOOD], vectors)
    assert place(verdict)[:4] == (1, 0, 0, "q")
    assert verdict.positions == 2
