# SPDX-License-Identifier: Apache-2.0
"""The host's side of docs/DESIGN.md 4: requests are encoded, responses decoded as they come.

A frame is ``'C' 'B' type 0``, u32 payload bytes, payload, u32 CRC-32 of all before it; everything little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "END",
    "CorruptResponse",
    "Count",
    "Dump",
    "FaultReport",
    "Frame",
    "FrameDecoder",
    "FullLogits",
    "Logits",
    "Message",
    "PromptIds",
    "Status",
    "Text",
    "Token",
    "Trace",
    "Walk",
    "bench_request",
    "encode",
    "generate_request",
    "message",
    "text_request",
    "trailing_fault",
    "verify_request",
]

MAX_PAYLOAD_BYTES = 1 << 26
NO_LAYER = SOURCE = 0xFFFFFFFF
AROUND, SPECIAL = 1, 2
"""COLIBRI_TOKENIZE_AROUND, COLIBRI_TOKENIZE_SPECIAL: as the host's tokenizer encodes a prompt."""


class CorruptResponse(ValueError):
    """The response's bytes are not frames. The text says what was found, and where in the stream."""


@dataclass(frozen=True)
class Frame:
    """One frame: a letter and its payload, whose CRC was right."""

    type: str
    payload: bytes


def encode(kind: str, payload: bytes = b"") -> bytes:
    """Return the bytes of one frame."""
    frame = b"CB" + kind.encode("ascii") + b"\0" + struct.pack("<I", len(payload)) + payload
    return frame + struct.pack("<I", zlib.crc32(frame))


END = encode("E")


def verify_request(ids: Sequence[int], source: Sequence[int] | None = None, *, dump: bool = False) -> bytes:
    """Return the request that replays `ids` and traces every position; `dump` also sends each tensor.

    source  what an encoder reads before, traced too; None: the model has none
    """
    return encode("V", struct.pack("<I", int(dump)) + _source(source) + _ids(ids))


def bench_request(ids: Sequence[int], source: Sequence[int] | None = None) -> bytes:
    """Return the request that runs `ids`, one colibri_forward a token."""
    return encode("B", _source(source) + _ids(ids))


def _ids(ids: Sequence[int]) -> bytes:
    return struct.pack(f"<I{len(ids)}i", len(ids), *ids)


def _source(source: Sequence[int] | None) -> bytes:
    return b"" if source is None else _ids(source)


def generate_request(
    ids: Sequence[int],
    n_new: int,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    eos: Sequence[int] = (),
    source: Sequence[int] | None = None,
) -> bytes:
    """Return the request that continues `ids` by up to `n_new` tokens. Temperature 0 is greedy. source: see `verify_request`."""
    head = _generation(n_new, temperature, top_k, top_p, seed, eos)
    return encode("G", head + _source(source) + _ids(ids))


def text_request(
    prompt: bytes,
    n_new: int,
    *,
    flags: int = AROUND | SPECIAL,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    eos: Sequence[int] = (),
) -> bytes:
    """Return the request that tokenises a prompt on the target and continues it by up to `n_new` tokens; 0: only tokenises it."""
    head = _generation(n_new, temperature, top_k, top_p, seed, eos)
    return encode("P", head + struct.pack("<II", flags, len(prompt)) + prompt)


def _generation(n_new: int, temperature: float, top_k: int, top_p: float, seed: int, eos: Sequence[int]) -> bytes:
    """How a request says that its prompt goes on."""
    if len(eos) > 4:
        raise ValueError("at most four end tokens")
    return struct.pack("<IfIfQ4i", n_new, temperature, top_k, top_p, seed, *eos, *[-1] * (4 - len(eos)))


class FrameDecoder:
    """Cuts a stream of bytes into frames. CorruptResponse at the first byte that cannot belong to one."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._consumed = 0

    @property
    def pending(self) -> bytes:
        """Bytes of a frame that is not complete yet."""
        return bytes(self._pending)

    def feed(self, data: bytes) -> list[Frame]:
        """Take in `data`; return the frames that it completes."""
        self._pending += data
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def finish(self) -> None:
        """The stream has ended: complain about a frame that was cut short."""
        if self._pending:
            raise CorruptResponse(
                f"the stream ends inside a frame, {len(self._pending)} bytes after byte {self._consumed}"
            )

    def _next(self) -> Frame | None:
        head = bytes(self._pending[:8])
        if not b"CB".startswith(head[:2]) or (len(head) >= 4 and head[3] != 0):
            raise CorruptResponse(f"byte {self._consumed} starts no frame: {head!r}")
        if len(head) < 8:
            return None
        n_bytes = int.from_bytes(head[4:], "little")
        if n_bytes > MAX_PAYLOAD_BYTES:
            raise CorruptResponse(f"the frame at byte {self._consumed} claims {n_bytes} bytes of payload")
        total = 8 + n_bytes + 4
        if len(self._pending) < total:
            return None
        body, tail = bytes(self._pending[: total - 4]), bytes(self._pending[total - 4 : total])
        if zlib.crc32(body) != int.from_bytes(tail, "little"):
            raise CorruptResponse(f"the frame '{chr(head[2])}' at byte {self._consumed} has a wrong CRC")
        del self._pending[:total]
        self._consumed += total
        return Frame(chr(head[2]), body[8:])


def trailing_fault(data: bytes) -> FaultReport | None:
    """Find the fault report at the end of bytes that are no whole frames: the fault cut another frame short."""
    for n_bytes in (28, 36):
        tail = data[-n_bytes:]
        if len(tail) == n_bytes and tail.startswith(b"CBX\0"):
            try:
                frames = FrameDecoder().feed(tail)
            except CorruptResponse:
                continue
            report = message(frames[0]) if frames else None
            if isinstance(report, FaultReport):
                return report
    return None


@dataclass(frozen=True)
class Trace:
    """'T': CRC-32 of each trace tensor at a position, in stage order; at SOURCE of those of the encoder."""

    position: int
    crcs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Logits:
    """'L': the logits at a position."""

    position: int
    values: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Dump:
    """'D': one trace tensor's bytes. `layer` None: it belongs to no layer; `index` is its place in the trace."""

    position: int
    layer: int | None
    index: int
    data: bytes


@dataclass(frozen=True, eq=False)
class FullLogits:
    """'F': the last position's logits from one colibri_forward over the whole prompt."""

    values: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Status:
    """'S': how the request ended; 0 is success. `position` is where generation ended, None for the others."""

    code: int
    position: int | None


@dataclass(frozen=True)
class Token:
    """'K': a generated token."""

    id: int


@dataclass(frozen=True)
class Text:
    """'U': the next characters of the text, the prompt's too; of them whole ones only, and at least one."""

    text: str


@dataclass(frozen=True)
class PromptIds:
    """'I': the ids of the prompt, whose text came before."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class Count:
    """'C': what the port's counter counted for the token at a position."""

    position: int
    count: int


@dataclass(frozen=True)
class Walk:
    """'W': the next stage of a token, and its layer; 0 where it belongs to none."""

    stage: str
    layer: int


@dataclass(frozen=True)
class FaultReport:
    """'X': the core took a fault. `pc` 0: the hardware could not save it (a stack overflow on Cortex-M)."""

    kind: int
    pc: int
    status: int
    address: int


Message = Trace | Logits | Dump | FullLogits | Status | Token | Text | PromptIds | Count | Walk | FaultReport


def message(frame: Frame) -> Message:
    """Return what a response frame says; CorruptResponse where its payload has not the size of its kind."""
    payload = frame.payload
    n = len(payload)
    try:
        match frame.type:
            case "T":
                position, count = struct.unpack_from("<II", payload)
                if n != 8 + 4 * count:
                    raise CorruptResponse(f"a trace of {count} tensors in {n} bytes")
                return Trace(position, struct.unpack_from(f"<{count}I", payload, 8))
            case "L":
                (position,) = struct.unpack_from("<I", payload)
                return Logits(position, _floats(payload[4:]))
            case "D":
                position, layer, index = struct.unpack_from("<III", payload)
                return Dump(position, None if layer == NO_LAYER else layer, index, payload[12:])
            case "F":
                return FullLogits(_floats(payload))
            case "S":
                if n == 4:
                    return Status(struct.unpack("<i", payload)[0], None)
                return Status(*struct.unpack("<iI", payload))
            case "K":
                return Token(struct.unpack("<i", payload)[0])
            case "U":
                return Text(payload.decode("utf-8"))
            case "I":
                return PromptIds(struct.unpack(f"<{n // 4}i", payload))
            case "C":
                return Count(*struct.unpack("<IQ", payload))
            case "W":
                (layer,) = struct.unpack_from("<I", payload)
                return Walk(payload[4:].decode("ascii", "replace"), layer)
            case "X":
                return FaultReport(*struct.unpack("<IIII" if n == 16 else "<IQIQ", payload))
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptResponse(f"a frame '{frame.type}' of {n} bytes: {error}") from error
    raise CorruptResponse(f"a frame of unknown type '{frame.type}'")


def _floats(data: bytes) -> npt.NDArray[np.float32]:
    if len(data) % 4:
        raise CorruptResponse(f"{len(data)} bytes of float32 values")
    return np.frombuffer(data, dtype="<f4").astype(np.float32)
