# SPDX-License-Identifier: Apache-2.0
"""colibri flash: put a hardware build on a board with the program of a debug probe."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import click

from colibri.boards import Board
from colibri.cli import options, render, targets, workflow
from colibri.errors import ImageError, NoVerdict, ToolError, UsageError
from colibri.folder import HEX, read_folder

_TIMEOUT_SECONDS = 600.0
_PROGRAMS = {"pyocd": "pyocd", "openocd": "openocd", "jlink": "JLinkExe"}
_INSTALL = {
    "pyocd": "python3 -m pip install pyocd",
    "openocd": "apt-get install --no-install-recommends openocd",
    "jlink": "install SEGGER's J-Link Software and Documentation Pack, which has JLinkExe",
}
_PARTS = {"all": ("all.hex",), "code": ("firmware.hex",), "weights": (HEX,), "separate": ("firmware.hex", HEX)}


@dataclass(frozen=True)
class Command:
    """What is run, in which folder, and what it reads on standard input."""

    words: list[str]
    folder: Path
    input: str = ""

    def __str__(self) -> str:
        """The same as a line for a shell."""
        source = f"printf '%s\\n' {shlex.join(self.input.splitlines())} | " if self.input else ""
        return f"cd {shlex.quote(str(self.folder))} && {source}{shlex.join(self.words)}"


@click.command("flash")
@options.DIR
@click.option("--probe", type=click.Choice(list(_PROGRAMS)), required=True, help="Whose program does it.")
@click.option(
    "--app",
    type=click.Choice(["generate", "text", "verify", "bench"]),
    default="generate",
    show_default=True,
    help="What.",
)
@click.option(
    "--part",
    type=click.Choice(list(_PARTS)),
    default="all",
    show_default=True,
    help="all.hex; the code or the weights alone; or both, one file after the other.",
)
@click.option("--target", metavar="NAME", help="pyOCD target, OpenOCD configuration or J-Link device. [the board's]")
@options.toolchain(allow_all=False)
@options.OPT
@click.option("--timeout", type=options.SecondsType(), default=_TIMEOUT_SECONDS, show_default=True, help="Seconds.")
@click.option("--dry-run", is_flag=True, help="Print the probe's command; run nothing.")
@options.JSON
def command(
    folder: Path,
    probe: str,
    app: str,
    part: str,
    target: str | None,
    toolchain: str,
    opt: str,
    timeout: float,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write a hardware build of the packed folder DIR to the board behind a debug probe, and start it."""
    packed = read_folder(folder)
    board = workflow.board_of(packed)
    build = targets.hardware_build(packed, app, toolchain, opt).parent  # type: ignore[arg-type]  # click's choices
    files = [name if name != HEX else os.path.join("..", HEX) for name in _PARTS[part]]  # noqa: PTH118
    for name in files:
        if not (build / name).is_file():
            raise ImageError(str(build / name), expected="a file", got="nothing there", hint="pack and build it again")
    wanted = compose(probe, board, target, build.absolute(), files)
    if not dry_run:
        _run(wanted, probe, timeout)
    if as_json:
        render.document(
            {
                "board": board.name,
                "probe": probe,
                "command": wanted.words,
                "input": wanted.input,
                "folder": str(wanted.folder),
                "files": [str(build / name) for name in files],
                "flashed": not dry_run,
            }
        )
    elif dry_run:
        print(wanted)
    else:
        print(f"{board.name}: flashed {', '.join(files)} of {build} with {probe}")


def compose(probe: str, board: Board, target: str | None, build: Path, files: list[str]) -> Command:
    """The probe's own command. Raises UsageError where nobody says what the part is called."""
    flash = board.flash
    known = {"pyocd": flash.pyocd, "openocd": " ".join(flash.openocd) or None, "jlink": flash.jlink}[probe]
    if target is None and known is None:
        raise UsageError(
            "--target",
            expected=f"what {probe} calls the part of {board.name}",
            got=f"nothing, and no '{probe}' under [flash] in {board.path.name}",
            hint=f"give --target NAME, or add [flash] with {probe} to the board's TOML (docs/PORTING.md)",
        )
    program = _PROGRAMS[probe]
    if probe == "pyocd":
        return Command([program, "flash", "--target", target or str(known), "--format", "hex", *files], build)
    if probe == "openocd":
        configurations = [_beside(target)] if target else [_beside(name, board.path.parent) for name in flash.openocd]
        words = [word for name in configurations for word in ("-f", name)]
        steps = [f"program {name} verify" for name in files]
        return Command([program, *words, "-c", "; ".join([*steps, "reset run", "shutdown"])], build)
    interface = ["-if", flash.jlink_interface, *(["-jtagconf", "-1,-1"] if flash.jlink_interface == "JTAG" else [])]
    words = [program, "-device", target or str(known), *interface, "-speed", "4000"]
    words += ["-autoconnect", "1", "-NoGui", "1", "-ExitOnError", "1"]
    return Command(words, build, "\n".join(["r", "h", *(f"loadfile {name}" for name in files), "r", "g", "exit", ""]))


def _beside(name: str, base: Path | None = None) -> str:
    """A configuration file of the user's by its full path; OpenOCD's own by the name it has there."""
    path = (base or Path.cwd()) / name
    return str(path.absolute()) if path.is_file() else name


def _run(wanted: Command, probe: str, timeout: float) -> None:
    """Run it. Raises ToolError where the program is missing, NoVerdict where it fails or does not end."""
    program = wanted.words[0]
    path = shutil.which(program)
    if path is None:
        raise ToolError(program, expected="a program in PATH", got="nothing of that name", hint=_INSTALL[probe])
    render.progress(f"flashing with {program}")
    try:
        process = subprocess.Popen(
            [path, *wanted.words[1:]],
            cwd=wanted.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(
            path, expected="a program that starts", got=error.strerror or str(error), hint=_INSTALL[probe]
        ) from error
    try:
        output, _ = process.communicate(wanted.input.encode(), timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise NoVerdict(
            program,
            expected=f"an end within {timeout:g} s",
            got="none",
            hint="is the probe connected and the board powered? --timeout gives it longer",
        ) from error
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
    if process.returncode != 0:
        lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
        raise NoVerdict(
            program,
            expected="exit status 0",
            got=f"exit status {process.returncode}" + (f": {' | '.join(lines[-3:])}" if lines else ""),
            hint=f"is the probe connected and the board powered? run it by hand: {wanted}",
        )
