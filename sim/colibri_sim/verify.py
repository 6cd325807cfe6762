# SPDX-License-Identifier: Apache-2.0
"""Compare what a target says with what the golden model said, bit for bit; name the first difference.

The target sends, for each position, the CRC-32 of every tensor of the step and the logits themselves, then the logits of the
same prompt in one call. A CRC that differs names position, layer and tensor; a second run of that prompt sends the tensor, and
the golden model, run again, gives the element and its bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from colibri.errors import NoVerdict
from colibri_sim.golden.trace import TraceName
from colibri_sim.qemu.frames import (
    END,
    SOURCE,
    CorruptResponse,
    Dump,
    Frame,
    FullLogits,
    Logits,
    Message,
    Status,
    Trace,
    message,
    verify_request,
)
from colibri_sim.vectors import IN_SOURCE, from_hex

M = TypeVar("M", bound=Message)

ERR_RANGE = -26
"""COLIBRI_ERR_RANGE of firmware/include/colibri/status.h."""

Run = Callable[[bytes], Iterator[Frame]]
"""Starts the verify application on a request and yields its response."""

Tensors = Callable[[Sequence[int], int, Sequence[int] | None], Mapping[TraceName, Any]]
"""The golden model's tensors at one position of a prompt behind a source; at IN_SOURCE those of the source, token by token."""


@dataclass(frozen=True)
class Difference:
    """The first place where target and golden model disagree.

    position -1: in the source, at `token` of it. layer None: outside the layers. slot: which of the chosen experts. element None,
    bits None: golden could not be run again.
    """

    prompt: int
    position: int
    layer: int | None
    tensor: str
    slot: int | None = None
    element: int | None = None
    expected_bits: str | None = None
    got_bits: str | None = None
    token: int | None = None

    def __str__(self) -> str:
        layer = "" if self.layer is None else f", layer {self.layer}"
        slot = "" if self.slot is None else f", slot {self.slot}"
        source = "source" if self.token is None else f"source token {self.token}"
        position = source if self.position == IN_SOURCE else f"position {self.position}"
        place = f"prompt {self.prompt}, {position}{layer}, tensor {self.tensor}{slot}"
        if self.element is None:
            return place
        return f"{place}, element {self.element}: expected {self.expected_bits}, got {self.got_bits}"


@dataclass(frozen=True)
class Verdict:
    """Positions compared, and the first difference, if any."""

    positions: int
    first_difference: Difference | None

    @property
    def bit_exact(self) -> bool:
        """Whether everything was equal."""
        return self.first_difference is None


def verify(run: Run, vectors: dict[str, Any], tensors: Tensors | None) -> Verdict:
    """Replay every prompt of vectors.json.

    tensors  runs the golden model again to find the differing element; None: the element is not looked for

    Raises NoVerdict where the target's answer has not the expected form, and what `run` raises.
    """
    prompts = vectors["prompts"]
    names = [TraceName(*name) for name in vectors["trace"]]
    request = b"".join(verify_request(prompt["ids"], prompt.get("source")) for prompt in prompts) + END
    messages = _Messages(run(request))
    positions = 0
    for index, prompt in enumerate(prompts):
        found = _compare_source(messages, index, prompt, vectors) or _compare_prompt(messages, index, prompt, names)
        if found is not None:
            messages.close()
            return Verdict(positions, _locate(run, found, prompt, vectors, tensors))
        positions += len(prompt["ids"])
    messages.finish()
    return Verdict(positions, None)


def _compare_source(
    messages: _Messages, index: int, prompt: dict[str, Any], vectors: dict[str, Any]
) -> Difference | None:
    """What the encoder left. Of a tensor that differs, `_locate` finds the token."""
    if prompt.get("source") is None or prompt["range_at"] == IN_SOURCE:
        return None
    trace = messages.take(Trace)
    if trace is None:
        code = messages.require(Status).code
        if code == 0:
            raise _malformed("the tensors of the source", "none, and status 0")
        return Difference(index, IN_SOURCE, None, "status", None, 0, _bits(0), _bits(code))
    _check_position(trace.position, SOURCE)
    if len(trace.crcs) != len(prompt["source_crc32"]):
        raise _malformed(f"{len(prompt['source_crc32'])} tensors of the source", str(len(trace.crcs)))
    for name, want, got in zip(vectors["source_trace"], prompt["source_crc32"], trace.crcs, strict=True):
        if want != got:
            return Difference(index, IN_SOURCE, *name)
    return None


def _compare_prompt(
    messages: _Messages, index: int, prompt: dict[str, Any], names: list[TraceName]
) -> Difference | None:
    """Read one prompt's answer to its end, or to the first difference."""
    n = len(prompt["ids"])
    if prompt["range_at"] is not None:
        return _compare_range(messages, index, prompt, names)
    for position in range(n):
        trace = messages.take(Trace)
        if trace is None:  # the step failed where the golden model went on
            code = messages.require(Status).code
            if code == 0:
                raise _malformed(f"position {position}", "none, and status 0")
            return Difference(index, position, None, "status", None, 0, _bits(0), _bits(code))
        _check_position(trace.position, position)
        expected = prompt["trace_crc32"][position]
        if len(trace.crcs) != len(expected):
            raise _malformed(f"{len(expected)} tensors at each position", str(len(trace.crcs)))
        for name, want, got in zip(names, expected, trace.crcs, strict=True):
            if want != got:
                return Difference(index, position, name.layer, name.tensor, name.slot)
        logits = messages.require(Logits)
        _check_position(logits.position, position)
        place = Difference(index, position, None, "logits")
        difference = _first_element(place, from_hex(prompt["logits"][position]), logits.values)
        if difference is not None:
            return difference
    full = messages.take(FullLogits)
    code = messages.require(Status).code
    if full is None or code != 0:
        if code == 0:
            raise _malformed("the logits of the whole prompt", "none, and status 0")
        return Difference(index, n - 1, None, "status", None, 0, _bits(0), _bits(code))
    place = Difference(index, n - 1, None, "logits of colibri_forward")
    return _first_element(place, from_hex(prompt["logits"][-1]), full.values)


def _compare_range(
    messages: _Messages, index: int, prompt: dict[str, Any], names: list[TraceName]
) -> Difference | None:
    """Golden left the range: the target must say so at the same position."""
    position = min(prompt["range_at"], 0)
    while (trace := messages.take(Trace)) is not None:
        _check_position(trace.position, position)
        _check_position(messages.require(Logits).position, position)
        position += 1
    messages.take(FullLogits)
    status = messages.require(Status)
    if status.code == ERR_RANGE and position == prompt["range_at"]:
        return None
    return Difference(index, position, None, "status", None, 0, _bits(ERR_RANGE), _bits(status.code))


def _first_element(place: Difference, expected: npt.NDArray[Any], got: npt.NDArray[Any]) -> Difference | None:
    """The first element whose bits differ; `place` completed with it."""
    want, have = (np.ascontiguousarray(a).view(np.uint32) for a in (expected, got))
    if want.shape != have.shape:
        raise _malformed(f"{want.size} elements of {place.tensor}", str(have.size))
    differing = np.flatnonzero(want != have)
    if not differing.size:
        return None
    at = int(differing[0])
    bits = (f"{int(want[at]):#010x}", f"{int(have[at]):#010x}")
    return replace(place, element=at, expected_bits=bits[0], got_bits=bits[1])


def _locate(
    run: Run, found: Difference, prompt: dict[str, Any], vectors: dict[str, Any], tensors: Tensors | None
) -> Difference:
    """The element of a difference that only a CRC has shown, by running target and golden model once more."""
    if found.element is not None or tensors is None or found.tensor == "status":
        return found
    name = TraceName(found.layer, found.tensor, found.slot)
    in_source = found.position == IN_SOURCE
    ids = prompt["ids"][: max(found.position, 0) + 1]
    expected = tensors(ids, found.position, prompt.get("source"))[name]
    by_token = dict(enumerate(expected)) if in_source else {found.position: expected}
    index = vectors["source_trace" if in_source else "trace"].index(list(name))
    source_is_over = prompt.get("source") is None
    for frame in run(verify_request(ids, prompt.get("source"), dump=True) + END):
        got = _understood(frame)
        if isinstance(got, Trace) and got.position == SOURCE:
            source_is_over = True
        if isinstance(got, Dump) and source_is_over != in_source and got.index == index and got.position in by_token:
            want = by_token[got.position]
            values = np.frombuffer(got.data, dtype=want.dtype.newbyteorder("<")).astype(want.dtype)
            place = replace(found, token=got.position) if in_source else found
            difference = _first_element(place, want, values)
            if difference is not None or not in_source:
                return difference or found
    return found


class _Messages:
    """The target's messages in order, with one of lookahead."""

    def __init__(self, frames: Iterator[Frame]) -> None:
        self._frames = frames
        self._next: Message | None = None

    def take(self, kind: type[M]) -> M | None:
        if self._next is None:
            frame = next(self._frames, None)
            if frame is None:
                raise _malformed(f"a {kind.__name__} message", "the end of the response")
            self._next = _understood(frame)
        if not isinstance(self._next, kind):
            return None
        taken, self._next = self._next, None
        return taken

    def require(self, kind: type[M]) -> M:
        taken = self.take(kind)
        if taken is None:
            raise _malformed(f"a {kind.__name__} message", type(self._next).__name__)
        return taken

    def close(self) -> None:
        """Nothing more is read: the target is free for the next run."""
        if isinstance(self._frames, Generator):
            self._frames.close()

    def finish(self) -> None:
        """The response must end here. The program runs to its end, so that a failure after the last answer shows too."""
        frame = next(self._frames, None)
        if frame is not None:
            raise _malformed("the end of the response", f"a frame '{frame.type}'")


def _understood(frame: Frame) -> Message:
    try:
        return message(frame)
    except CorruptResponse as error:
        raise _malformed("a message of this protocol", str(error)) from error


def _check_position(got: int, expected: int) -> None:
    if got != expected:
        raise _malformed(f"position {expected}", f"position {got}")


def _bits(code: int) -> str:
    return f"{struct.unpack('<I', struct.pack('<i', code))[0]:#010x}"


def _malformed(expected: str, got: str) -> NoVerdict:
    return NoVerdict(
        "the target's answer",
        expected=expected,
        got=got,
        hint="the firmware does not match the packed folder: build it again",
    )
