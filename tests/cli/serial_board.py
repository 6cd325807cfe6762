# SPDX-License-Identifier: Apache-2.0
"""A board at a serial port: its hardware build under QEMU behind a pseudo-terminal, with a line that can do harm."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import threading
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from colibri.boards import load_board
from colibri_sim.qemu.machine import console_command

Line = Callable[[bytes], bytes]
"""What arrives of what was sent."""


@dataclass
class Harm:
    """After `pattern` has passed for the `nth` time, let `skip` bytes pass, then do `what` to the next `n_bytes`."""

    pattern: bytes
    what: str  # drop, change or add
    skip: int = 0
    n_bytes: int = 1
    nth: int = 1
    done: int = 0
    passed: bytes = b""
    until: int = -1

    def __call__(self, data: bytes) -> bytes:
        return b"".join(self._one(byte) for byte in data)

    def _one(self, byte: int) -> bytes:
        if self.until == 0 and self.done < self.n_bytes:
            self.done += 1
            return {"drop": b"", "change": bytes([byte ^ 0x10]), "add": bytes([byte, byte])}[self.what]
        self.until -= self.until > 0
        self.passed = (self.passed + bytes([byte]))[-len(self.pattern) :]
        if self.until < 0 and self.passed == self.pattern:
            self.nth -= 1
            self.until = self.skip if self.nth == 0 else -1
        return bytes([byte])


def untouched(data: bytes) -> bytes:
    return data


@contextlib.contextmanager
def serial_board(board: str, elf: Path, to_host: Line = untouched, to_board: Line = untouched) -> Iterator[str]:
    """Power the board; yields the path of its port. A reset of the core starts it again, as on hardware."""
    command = [word for word in console_command(load_board(board), elf) if word != "-no-reboot"]
    master, slave = pty.openpty()
    tty.setraw(slave)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as simulator:
        assert simulator.stdin is not None
        assert simulator.stdout is not None
        stop, stopped = os.pipe()
        bridge = threading.Thread(
            target=_bridge,
            args=(stop, master, simulator.stdin.fileno(), simulator.stdout.fileno(), to_host, to_board),
        )
        bridge.start()
        try:
            yield os.ttyname(slave)
        finally:
            os.close(stopped)
            simulator.kill()
            bridge.join()
            for descriptor in (stop, master, slave):
                os.close(descriptor)


def _bridge(stop: int, master: int, stdin: int, stdout: int, to_host: Line, to_board: Line) -> None:
    """Carry bytes until the other end of `stop` is closed. What the host does not read is lost, as on a line."""
    os.set_blocking(master, False)
    while True:
        ready = select.select([stop, master, stdout], [], [])[0]
        if stop in ready:
            return
        if master in ready:
            with contextlib.suppress(OSError):
                os.write(stdin, to_board(os.read(master, 4096)))
        if stdout in ready:
            data = os.read(stdout, 4096)
            if not data:
                return
            data = to_host(data)
            while data and select.select([stop], [master], [], 5.0)[1]:
                data = data[os.write(master, data) :]
