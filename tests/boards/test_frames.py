# SPDX-License-Identifier: Apache-2.0
"""The host's side of the protocol, without a target."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colibri_sim.qemu import frames
from colibri_sim.qemu.frames import CorruptResponse, Frame, FrameDecoder, encode, message

STREAM = encode("K", b"\x07\0\0\0") + encode("S", struct.pack("<iI", 0, 9)) + encode("e")
EXPECTED = [Frame("K", b"\x07\0\0\0"), Frame("S", struct.pack("<iI", 0, 9)), Frame("e", b"")]


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_frames_decode_however_the_stream_is_cut(cuts: list[int]) -> None:
    decoder = FrameDecoder()
    got = []
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in itertools.pairwise(edges):
        got += decoder.feed(STREAM[start:end])
    decoder.finish()
    assert got == EXPECTED


def decode_all(data: bytes) -> list[Frame]:
    decoder = FrameDecoder()
    got = decoder.feed(data)
    decoder.finish()
    return got


@given(st.integers(0, len(STREAM) * 8 - 1))
def test_no_flipped_bit_goes_unnoticed(bit: int) -> None:
    damaged = bytearray(STREAM)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptResponse):
        decode_all(bytes(damaged))


@pytest.mark.parametrize("n_bytes", [n for n in range(1, len(STREAM)) if n not in (16, 36)])
def test_a_stream_cut_short_is_corrupt(n_bytes: int) -> None:
    decoder = FrameDecoder()
    decoder.feed(STREAM[:n_bytes])
    with pytest.raises(CorruptResponse):
        decoder.finish()


def test_the_first_frames_come_before_the_damage() -> None:
    decoder = FrameDecoder()
    assert EXPECTED[:1] == decoder.feed(STREAM[:16])
    with pytest.raises(CorruptResponse, match="byte 16"):
        decoder.feed(b"Segmentation fault")


def test_an_absurd_length_is_refused_at_once() -> None:
    with pytest.raises(CorruptResponse, match="claims"):
        FrameDecoder().feed(b"CBK\0\xff\xff\xff\xff")


MESSAGES = [
    ("T", struct.pack("<5I", 3, 3, 1, 2, 3), frames.Trace(3, (1, 2, 3))),
    ("D", struct.pack("<3I", 3, 0xFFFFFFFF, 5) + b"abcd", frames.Dump(3, None, 5, b"abcd")),
    ("D", struct.pack("<3I", 3, 2, 5), frames.Dump(3, 2, 5, b"")),
    ("S", struct.pack("<i", -26), frames.Status(-26, None)),
    ("S", struct.pack("<iI", -20, 512), frames.Status(-20, 512)),
    ("K", struct.pack("<i", 511), frames.Token(511)),
    ("C", struct.pack("<IQ", 1, 1 << 40), frames.Count(1, 1 << 40)),
    ("X", struct.pack("<IIII", 4, 0x100, 0x82, 0x21000000), frames.FaultReport(4, 0x100, 0x82, 0x21000000)),
    ("X", struct.pack("<IQIQ", 11, 1 << 40, 1, 2), frames.FaultReport(11, 1 << 40, 1, 2)),
]


@pytest.mark.parametrize(("kind", "payload", "expected"), MESSAGES)
def test_each_response_says_what_it_says(kind: str, payload: bytes, expected: frames.Message) -> None:
    assert expected == message(Frame(kind, payload))


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("T", struct.pack("<III", 1, 2, 3)), ("L", b""), ("L", b"12345"), ("F", b"123"), ("D", b"1234"), ("S", b"12345"),
     ("K", b"123"), ("C", b"1234"), ("X", b"1234"), ("?", b"")],
)  # fmt: skip
def test_a_payload_of_the_wrong_size_is_corrupt(kind: str, payload: bytes) -> None:
    with pytest.raises(CorruptResponse):
        message(Frame(kind, payload))


def test_logits_keep_their_bits() -> None:
    values = np.array([0x00000001, 0x80000000, 0x7F7FFFFF], dtype="<u4").tobytes()
    got = message(Frame("L", struct.pack("<I", 4) + values))
    assert isinstance(got, frames.Logits)
    assert (4, values) == (got.position, got.values.tobytes())


def test_a_fault_is_found_behind_a_frame_that_it_cut_short() -> None:
    fault = encode("X", struct.pack("<IIII", 4, 1, 2, 3))
    assert frames.FaultReport(4, 1, 2, 3) == frames.trailing_fault(b"CBL\0\xff\0\0\0 partial" + fault)
    assert frames.trailing_fault(fault[:-1]) is None
    assert frames.trailing_fault(fault[:-1] + b"\0") is None


def test_requests_have_the_layout_of_the_design() -> None:
    assert encode("V", struct.pack("<IIii", 1, 2, 5, 6)) == frames.verify_request([5, 6], dump=True)
    assert encode("B", struct.pack("<Ii", 1, 5)) == frames.bench_request([5])
    expected = struct.pack("<IfIfQ4iIi", 9, 0.5, 40, 1.0, 7, 2, -1, -1, -1, 1, 5)
    assert encode("G", expected) == frames.generate_request([5], 9, temperature=0.5, top_k=40, seed=7, eos=[2])
    with pytest.raises(ValueError, match="four"):
        frames.generate_request([5], 9, eos=[1, 2, 3, 4, 5])
