# SPDX-License-Identifier: Apache-2.0
"""A board at a serial port: the requests of docs/DESIGN.md 4, one at a time, and the frames of each answer.

A UART loses bytes that come while the core computes, and a line loses or changes some. So the next request waits for the end
of the answer before it, and whatever is not the answer, whole and in order, is NoVerdict: damage is never taken for a
difference.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from colibri.errors import NoVerdict, ToolError, UsageError
from colibri_sim.qemu.frames import CorruptResponse, Frame, FrameDecoder, Status, encode, message, trailing_fault
from colibri_sim.qemu.runner import TargetFault

__all__ = ["BAUD_RATES", "DEFAULT_BAUD", "SerialPort", "run"]

_RATES = {int(name[1:]): getattr(termios, name) for name in dir(termios) if name[:1] == "B" and name[1:].isdecimal()}
BAUD_RATES = tuple(sorted(rate for rate in _RATES if rate >= 1200))
DEFAULT_BAUD = 115200

ERR_REQUEST = -128
"""COLIBRI_APP_ERR_REQUEST: what every application says to a request that is damaged or not its own."""

_PROBE = encode("?")
_PROBE_SECONDS = 1.0
_QUIET_SECONDS = 0.3
_HEADER_BYTES = 8
_HEADER_SECONDS = 0.02


@dataclass(frozen=True)
class SerialPort:
    """A serial device or pseudo-terminal, and its rate."""

    path: Path
    baud: int = DEFAULT_BAUD

    def seconds(self, n_bytes: int) -> float:
        """How long so many bytes take on the line: ten bits each."""
        return 10.0 * n_bytes / self.baud

    def __str__(self) -> str:
        return f"{self.path}@{self.baud}"


def run(
    port: SerialPort, request: bytes, timeout_s: float, *, elf: Path, arch: str, pause_s: float = 0.0
) -> Iterator[Frame]:
    """Send the frames of `request` one after the other and yield each frame of the answers when it is complete.

    timeout_s  wall clock for everything; NoVerdict when it is over
    elf, arch  what is on the board, to name the place of a fault
    pause_s    after a request's header, when the application clears its state: a UART without a queue loses what comes then

    After 'E' the board starts again, ready for the next session. Raises UsageError where there is no port, ToolError where it
    cannot be used, TargetFault for a reported fault, NoVerdict for everything that is not a whole answer.
    """
    deadline = time.monotonic() + timeout_s
    with _opened(port) as descriptor:
        line = _Line(port, descriptor, deadline, timeout_s)
        session = _Session(line, elf, arch)
        session.synchronise()
        for frame in FrameDecoder().feed(request):
            line.send(encode(frame.type, frame.payload), pause_s)
            if frame.type == "E":
                return
            yield from session.answer()


@contextlib.contextmanager
def _opened(port: SerialPort) -> Iterator[int]:
    """The port in raw mode: eight bits, no parity, no flow control; nobody else's meanwhile."""
    try:
        descriptor = os.open(port.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise UsageError(
            f"--serial {port.path}", expected="a serial port", got="nothing there", hint="check the cable and the name"
        ) from error
    except OSError as error:
        raise ToolError(
            str(port.path),
            expected="a port that can be opened",
            got=error.strerror or str(error),
            hint="does the port belong to a group that you are not in (often dialout), or to another program?",
        ) from error
    try:
        if not os.isatty(descriptor):
            raise UsageError(
                f"--serial {port.path}", expected="a serial port", got="something else", hint="give the device's path"
            )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _make_raw(descriptor, port.baud)
        except (OSError, termios.error) as error:
            busy = isinstance(error, BlockingIOError)
            raise ToolError(
                str(port.path),
                expected="a port that can be used",
                got="one that another colibri uses" if busy else str(error),
                hint="wait until it is done" if busy else "try another rate: --serial PORT@BAUD",
            ) from error
        yield descriptor
    finally:
        os.close(descriptor)


def _make_raw(descriptor: int, baud: int) -> None:
    control_characters = termios.tcgetattr(descriptor)[6]
    control_characters[termios.VMIN], control_characters[termios.VTIME] = 0, 0
    rate = _RATES[baud]
    cflag = termios.CS8 | termios.CREAD | termios.CLOCAL
    termios.tcsetattr(descriptor, termios.TCSANOW, [0, 0, cflag, 0, rate, rate, control_characters])
    termios.tcflush(descriptor, termios.TCIOFLUSH)


@dataclass(frozen=True)
class _Line:
    """Bytes out and in, until the deadline."""

    port: SerialPort
    descriptor: int
    deadline: float
    timeout_s: float

    def send(self, data: bytes, pause_s: float = 0.0) -> None:
        """Send a frame: the header, a pause, the rest."""
        self._write(data[:_HEADER_BYTES])
        time.sleep(pause_s + _HEADER_SECONDS + self.port.seconds(_HEADER_BYTES))
        self._write(data[_HEADER_BYTES:])

    def _write(self, data: bytes) -> None:
        while data:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([], [self.descriptor], [], left)[1]:
                raise self.timeout("a port that takes no more bytes")
            with self._port_errors():
                data = data[os.write(self.descriptor, data) :]

    def read(self, until: float) -> bytes:
        """What has come; b"" where nothing comes until then."""
        left = min(until, self.deadline) - time.monotonic()
        if left <= 0 or not select.select([self.descriptor], [], [], left)[0]:
            return b""
        with self._port_errors():
            data = os.read(self.descriptor, 1 << 16)
            if not data:
                raise OSError("its end")
            return data

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.deadline

    def timeout(self, got: str) -> NoVerdict:
        """The time is up."""
        return NoVerdict(
            str(self.port),
            expected=f"the whole answer within {self.timeout_s:g} s",
            got=got,
            hint="bytes were lost, the core hangs, or it needs longer (--timeout): reset the board and try again",
        )

    @contextlib.contextmanager
    def _port_errors(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError:
            pass
        except OSError as error:
            raise NoVerdict(
                str(self.port),
                expected="a port that stays",
                got=error.strerror or str(error),
                hint="check the cable and the board's power",
            ) from error


class _Session:
    def __init__(self, line: _Line, elf: Path, arch: str) -> None:
        self._line, self._elf, self._arch = line, elf, arch
        self._decoder = FrameDecoder()
        self._tail = b""
        self._unanswered = 0

    def synchronise(self) -> None:
        """Ask something foreign until the refusal comes: whatever was on the line or in the core before is past then."""
        seen = b""
        answers: list[int] = []
        while not answers:
            if self._line.is_over:
                raise NoVerdict(
                    str(self._line.port),
                    expected=f"an answer of the board within {self._line.timeout_s:g} s",
                    got=f"{len(seen)} bytes that are none" if seen else "nothing",
                    hint="is it flashed with a --hardware build, and the rate right? reset the board and try again",
                )
            self._line.send(_PROBE)
            self._unanswered += 1
            until = time.monotonic() + _PROBE_SECONDS + self._line.port.seconds(len(_PROBE) * 3)
            while not answers and (data := self._line.read(until)):
                seen = (seen + data)[-(1 << 16) :]
                answers = _refusals(seen)
        while data := self._line.read(time.monotonic() + _QUIET_SECONDS):
            seen = (seen + data)[-(1 << 16) :]
        answers = _refusals(seen)
        self._unanswered -= min(len(answers), self._unanswered)
        if 8 in answers:
            raise self._foreign("the generate application")

    def answer(self) -> Iterator[Frame]:
        """The frames of one answer, the last of them 'S'."""
        n_frames = 0
        while True:
            for frame in self._received(n_frames):
                if frame.type == "S":
                    status = _understood(frame, self._line)
                    if isinstance(status, Status) and status.code == ERR_REQUEST:
                        if self._unanswered and n_frames == 0:
                            self._unanswered -= 1  # the answer to a probe, late
                            continue
                        raise self._foreign("a refusal: the request came damaged, or to another application")
                n_frames += 1
                yield frame
                if frame.type == "S":
                    return

    def _received(self, n_frames: int) -> list[Frame]:
        """The next frames; none where they are not complete yet. An answer's last frame is the last of all."""
        data = self._line.read(self._line.deadline)
        self._tail = (self._tail + data)[-64:]
        if not data and self._line.is_over:
            raise self._line.timeout(f"{n_frames} frames and {len(self._decoder.pending)} bytes of another")
        try:
            frames = self._decoder.feed(data)
        except CorruptResponse as error:
            while data := self._line.read(time.monotonic() + _QUIET_SECONDS):
                self._tail = (self._tail + data)[-64:]
                if self._line.is_over:
                    break
            self._raise_fault()
            raise _damaged(self._line, str(error)) from error
        self._raise_fault()
        end = next((i for i, frame in enumerate(frames) if frame.type == "S"), len(frames))
        late = self._unanswered and n_frames == 0
        if not late and (end + 1 < len(frames) or (end < len(frames) and self._decoder.pending)):
            raise _damaged(self._line, "bytes after the end of the answer")
        return frames

    def _raise_fault(self) -> None:
        """A fault report ends everything, also in the middle of a frame."""
        report = trailing_fault(self._tail)
        if report is not None:
            raise TargetFault(report, elf=self._elf, arch=self._arch, note="")

    def _foreign(self, got: str) -> NoVerdict:
        return NoVerdict(
            str(self._line.port),
            expected="an answer of the application that was built",
            got=got,
            hint="try again; if it stays so, flash the right application: colibri flash DIR --app APP",
        )


def _understood(frame: Frame, line: _Line) -> object:
    try:
        return message(frame)
    except CorruptResponse as error:
        raise _damaged(line, str(error)) from error


def _damaged(line: _Line, got: str) -> NoVerdict:
    return NoVerdict(
        str(line.port),
        expected="whole frames",
        got=got,
        hint="the line loses or changes bytes: check cable, ground and rate, and try again",
    )


def _refusals(data: bytes) -> list[int]:
    """Payload sizes of the refusals in what came: 4, or 8 where the application also tells a position."""
    found = []
    for n_bytes in (4, 8):
        head = b"CBS\0" + struct.pack("<Ii", n_bytes, ERR_REQUEST)
        at = data.find(head)
        while at >= 0:
            frame = data[at : at + 12 + n_bytes]
            if len(frame) == 12 + n_bytes and zlib.crc32(frame[:-4]) == int.from_bytes(frame[-4:], "little"):
                found.append(n_bytes)
            at = data.find(head, at + 1)
    return found
