# SPDX-License-Identifier: Apache-2.0
"""Run a firmware ELF, natively or under QEMU, and yield its response's frames as they come.

Whatever happens, the child and its process group are gone afterwards, and so is the temporary folder.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

from colibri.boards import Board
from colibri.errors import NoVerdict, ToolError
from colibri.output import output_errors
from colibri_sim.qemu.frames import CorruptResponse, FaultReport, Frame, FrameDecoder, message, trailing_fault
from colibri_sim.qemu.machine import linux_command, simulator_command
from colibri_sim.qemu.symbols import symbol_at

__all__ = ["TargetFault", "run"]

# What QEMU says although nothing is wrong.
HARMLESS = ("has no peer",)
KIND_NAMES = {
    "arm-m": {
        2: "non-maskable interrupt",
        3: "hard fault",
        4: "memory protection fault",
        5: "bus fault",
        6: "usage fault",
        7: "secure fault",
    },
    "riscv": {
        0: "misaligned instruction address",
        1: "instruction access fault",
        2: "illegal instruction",
        3: "breakpoint",
        4: "misaligned load",
        5: "load access fault",
        6: "misaligned store",
        7: "store access fault",
    },
    "aarch64": {
        0x00: "undefined instruction",
        0x07: "trapped FP access",
        0x0E: "illegal execution state",
        0x20: "instruction abort from below",
        0x21: "instruction abort",
        0x22: "misaligned program counter",
        0x24: "data abort from below",
        0x25: "data abort",
        0x26: "misaligned stack pointer",
        0x2F: "SError",
        0x3C: "breakpoint",
    },
    "linux": {int(s): s.name for s in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)},
}


class TargetFault(NoVerdict):
    """The firmware took a fault and reported it; `report` has the numbers."""

    code = "fault"

    def __init__(self, report: FaultReport, *, elf: Path, arch: str, note: str) -> None:
        self.report = report
        name = KIND_NAMES.get(arch, {}).get(report.kind, f"exception {report.kind}")
        place = symbol_at(elf, report.pc) if report.pc else "an unknown place (the stack has overflowed)"
        super().__init__(
            str(elf),
            expected="a program that ends",
            got=f"a {name} at {place}, status {report.status:#x}, address {report.address:#x}",
            hint=note or f"look at the code with: objdump -dl --start-address={report.pc:#x} {elf}",
        )


def run(
    board: Board,
    elf: Path,
    image: Path | None,
    request: bytes,
    timeout_s: float,
    *,
    icount: int | None = None,
) -> Iterator[Frame]:
    """Run `elf` on `request` and yield each frame of the response when it is complete.

    image      the packed image of a mapped board; linked boards have it in the ELF
    timeout_s  wall clock for the whole run; NoVerdict when it is over
    icount     see simulator_command

    Raises ToolError where the simulator is missing, TargetFault for a reported fault, NoVerdict for a timeout, an exit status
    other than 0, and a response that is cut short or corrupt.
    """
    with work_folder() as folder:
        (folder / "request.bin").write_bytes(request)
        mapped = board.image == "mapped"
        command = linux_command(board, elf, image) if mapped else simulator_command(board, elf, icount=icount)
        yield from stream(command, folder, timeout_s, elf=elf, arch=board.arch)


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """A temporary folder that is removed on every way out."""
    with output_errors(Path(tempfile.gettempdir())):
        folder = Path(tempfile.mkdtemp(prefix="colibri-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def stream(
    command: Sequence[str], folder: Path, timeout_s: float, *, elf: Path, arch: str
) -> Generator[Frame, None, None]:
    """Run `command` in `folder` with request.bin as its input; yield the frames on its output."""
    deadline = time.monotonic() + timeout_s
    decoder = FrameDecoder()
    n_frames = 0
    ended_early: CorruptResponse | None = None
    tail = b""
    with (folder / "request.bin").open("rb") as stdin, (folder / "stderr.txt").open("wb") as stderr:
        process = _start(command, folder, stdin.fileno(), stderr.fileno(), timeout_s)
        try:
            assert process.stdout is not None
            output = process.stdout.fileno()
            while data := _read(output, deadline, elf, timeout_s, n_frames, folder):
                tail = (tail + data)[-64:]
                if ended_early is not None:
                    continue  # only to see whether a fault report is at its end
                try:
                    frames = decoder.feed(data)
                except CorruptResponse as error:
                    ended_early = error
                    continue
                for frame in frames:
                    if frame.type == "X":
                        raise TargetFault(_fault(frame), elf=elf, arch=arch, note=_last_lines(folder))
                    n_frames += 1
                    yield frame
            status = _wait(process, deadline, elf, timeout_s, folder)
        finally:
            _kill(process)
    if ended_early is None:
        try:
            decoder.finish()
        except CorruptResponse as error:
            ended_early = error
    report = trailing_fault(tail) if ended_early is not None else None
    if report is not None:
        raise TargetFault(report, elf=elf, arch=arch, note=_last_lines(folder))
    if status != 0:
        raise NoVerdict(
            str(elf),
            expected="a run that ends with status 0",
            got=_describe_exit(status) + f" after {n_frames} frames",
            hint=_last_lines(folder) or f"nothing on standard error; run it by hand: {' '.join(command)}",
        )
    if ended_early is not None:
        raise NoVerdict(
            f"response of {elf}",
            expected="whole frames",
            got=str(ended_early),
            hint=_last_lines(folder) or "nothing on standard error; was the ELF built for this protocol?",
        )


def _start(command: Sequence[str], folder: Path, stdin: int, stderr: int, timeout_s: float) -> subprocess.Popen[bytes]:
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            bufsize=0,
        )
    except FileNotFoundError as error:
        raise ToolError(command[0], expected="a program", got="nothing there", hint="build it first") from error
    except OSError as error:
        raise NoVerdict(
            command[0],
            expected="a program that this machine can start",
            got=error.strerror or str(error),
            hint="is it built for this machine?",
        ) from error
    # Should this process be killed outright, the child still ends some day.
    cpu_seconds = int(timeout_s) + 60
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    return process


def _read(output: int, deadline: float, elf: Path, timeout_s: float, n_frames: int, folder: Path) -> bytes:
    left = deadline - time.monotonic()
    if left > 0:
        ready, _, _ = select.select([output], [], [], left)
        if ready:
            return os.read(output, 1 << 16)
    raise _timeout(elf, timeout_s, f"none after {n_frames} frames", folder)


def _wait(process: subprocess.Popen[bytes], deadline: float, elf: Path, timeout_s: float, folder: Path) -> int:
    try:
        return process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise _timeout(elf, timeout_s, "one that closed its output and went on", folder) from error


def _timeout(elf: Path, timeout_s: float, got: str, folder: Path) -> NoVerdict:
    return NoVerdict(
        str(elf),
        expected=f"an end within {timeout_s:g} s",
        got=got,
        hint=_last_lines(folder) or "it hangs, or needs longer: --timeout",
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _fault(frame: Frame) -> FaultReport:
    report = message(frame)
    assert isinstance(report, FaultReport)
    return report


def _last_lines(folder: Path, n_lines: int = 3) -> str:
    try:
        text = (folder / "stderr.txt").read_bytes()[-2000:].decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not any(h in line for h in HARMLESS)]
    return " | ".join(lines[-n_lines:])


def _describe_exit(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-status).name}"
    return f"status {status}"
