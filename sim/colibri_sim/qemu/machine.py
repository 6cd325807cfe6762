# SPDX-License-Identifier: Apache-2.0
"""Command lines that start a board: under QEMU, or natively where the board is the host."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

from colibri.boards import Board
from colibri.errors import ToolError, UsageError

__all__ = ["console_command", "find_tool", "linux_command", "probe_machine", "simulator_command"]

# QEMU adds devices that need boot ROMs and terminals unless told not to; none of them is ever wanted.
QUIET = ("-nic", "none", "-display", "none", "-monitor", "none", "-no-reboot")


def find_tool(name: str, package: str) -> str:
    """Return the path of a program, or say which Debian package has it."""
    path = shutil.which(name)
    if path is None:
        raise ToolError(
            name,
            expected="a program in PATH",
            got="nothing of that name",
            hint=f"apt-get install --no-install-recommends {package}",
        )
    return path


def simulator_command(board: Board, elf: Path, *, plugin: str | None = None, icount: int | None = None) -> list[str]:
    """Return the command that runs a simulator build: request.bin in its working directory, response on stdout.

    plugin  QEMU's -plugin argument
    icount  QEMU's -icount shift: virtual time follows instructions, which makes the board's timer count them; never
            together with a counting plugin, which then counts too much
    """
    qemu = board.qemu
    if qemu is None or qemu.machine is None:
        raise _no_simulator(board)
    command = [*_machine(board), *QUIET, "-serial", "none", "-semihosting-config", "enable=on,target=native"]
    if plugin is not None:
        command += ["-plugin", plugin]
    if icount is not None:
        command += ["-icount", f"shift={icount}"]
    return [*command, "-kernel", str(elf.absolute())]


def console_command(board: Board, elf: Path) -> list[str]:
    """Return the command that runs a hardware build, with the board's first UART on stdin and stdout.

    It never ends by itself: nothing on the board can stop QEMU.
    """
    if board.qemu is None or board.qemu.machine is None:
        raise _no_simulator(board)
    uart = ("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console")
    return [*_machine(board), *QUIET, *uart, "-kernel", str(elf.absolute())]


def probe_machine(board: Board, timeout_s: float) -> str | None:
    """Start the machine, stopped and empty, and end it again; return its complaint, None where there is none."""
    command = [*_machine(board), "-S", "-nic", "none", "-display", "none", "-serial", "none", "-monitor", "stdio"]
    try:
        result = subprocess.run(command, input="quit\n", capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return f"did not start within {timeout_s:g} s"
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    return None if result.returncode == 0 else (lines or [f"exit status {result.returncode}"])[-1]


def linux_command(board: Board, elf: Path, image: Path | None, *, plugin: str | None = None) -> list[str]:
    """Return the command that runs a linux build: request on stdin, response on stdout.

    Natively where this machine is the board's, otherwise, and with QEMU's -plugin argument, in user-mode emulation.
    """
    words = [str(elf.absolute()), *([] if image is None else [str(image.absolute())])]
    qemu = board.qemu
    if plugin is None and (qemu is None or qemu.binary == f"qemu-{platform.machine()}"):
        return words
    if qemu is None:
        raise _no_simulator(board)
    return [find_tool(qemu.binary, qemu.package), *([] if plugin is None else ["-plugin", plugin]), *words]


def _machine(board: Board) -> list[str]:
    qemu = board.qemu
    if qemu is None or qemu.machine is None:
        raise _no_simulator(board)
    command = [find_tool(qemu.binary, qemu.package), "-M", qemu.machine, *qemu.args]
    return command if qemu.ram_mib is None else [*command, "-m", f"{qemu.ram_mib}M"]


def _no_simulator(board: Board) -> UsageError:
    return UsageError(
        f"board {board.name}",
        expected="a board with a simulator",
        got=f"no machine under [qemu] in {board.path.name}",
        hint="choose a board that `colibri boards` lists with a simulator, or use the real one with --serial",
    )
