# SPDX-License-Identifier: Apache-2.0
"""The `colibri` command: the one place that prints errors and chooses exit codes."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

import click
import rich_click

from colibri.cli import render
from colibri.errors import ColibriError, OutputError, UsageError
from colibri.output import NO_SPACE

COMMANDS = (
    *("doctor", "boards", "plan", "pack", "build", "audit", "run", "verify", "bench", "flash", "golden", "inspect"),
    *("export-c", "export-gguf", "demo"),
)

EXIT_BUG = 70
EXIT_SIGINT = 130
EXIT_SIGTERM = 143


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Signals wait while modules are imported: extension modules swallow an exception that is raised in their set-up."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def module_of(command: str) -> str:
    """The module of one of COMMANDS."""
    return f"colibri.cli.{command.replace('-', '_')}"


class _Lazy(rich_click.RichGroup):
    """Imports a command's module when it is called: start-up stays short, and a broken one breaks no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with _signals_held():
            command: click.Command = importlib.import_module(module_of(cmd_name)).command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises ReaderGone where click would exit with 1, which is a verdict here."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="colibri-firmware")
def colibri() -> None:
    """Turn a Mixture-of-Experts checkpoint into verified bare-metal firmware."""


class ReaderGone(BaseException):
    """Whatever read our output has closed it: there is nobody to say anything to."""


class Terminated(BaseException):
    """SIGTERM, raised where the program stands so that every clean-up runs."""


def main() -> None:
    """Entry point of `colibri`."""
    _exit(sys.argv[1:])


def pack_main() -> None:
    """Entry point of `colibri-pack`: the same as `colibri pack`."""
    _exit(["pack", *sys.argv[1:]])


def _exit(args: list[str]) -> NoReturn:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name may be more than the locale can print
    sys.exit(run(args))


def run(args: list[str]) -> int:
    """Run one command line and return the process exit code. Errors go to stderr, and to stdout as JSON if asked."""
    signal.signal(signal.SIGTERM, _on_sigterm)
    try:
        return _run(args, as_json="--json" in args)
    except (ReaderGone, BrokenPipeError):
        _discard_output()
        return OutputError.exit_code
    except OSError as error:
        _discard_output()
        render.error(_cannot_write(error), as_json=False)
        return OutputError.exit_code
    except (KeyboardInterrupt, Terminated):  # the second of two
        return EXIT_SIGINT


def _run(args: list[str], *, as_json: bool) -> int:
    try:
        code = colibri.main(args=args, prog_name="colibri", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ColibriError as error:
        render.error(error, as_json=as_json)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return UsageError.exit_code
    except click.ClickException as error:
        render.error(_usage_error(error), as_json=as_json)
        return UsageError.exit_code
    except (KeyboardInterrupt, click.Abort):
        render.interrupted("SIGINT", as_json=as_json)
        return EXIT_SIGINT
    except Terminated:
        render.interrupted("SIGTERM", as_json=as_json)
        return EXIT_SIGTERM
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.EPIPE, *NO_SPACE):
            raise
        traceback.print_exc()
        render.bug(error, as_json=as_json)
        return EXIT_BUG


def _cannot_write(error: OSError) -> OutputError:
    return OutputError(
        str(error.filename or "standard output or the folder for temporary files"),
        expected="a place that can be written",
        got=error.strerror or str(error),
        hint="free space on that disk; TMPDIR names another folder for temporary files",
    )


def _discard_output() -> None:
    """Nothing can be written there any more, and Python must not try at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _on_sigterm(signum: int, frame: FrameType | None) -> None:
    raise Terminated


def _usage_error(error: click.ClickException) -> UsageError:
    ctx = getattr(error, "ctx", None)
    command = ctx.command_path if ctx is not None else "colibri"
    return UsageError(
        command, expected="a valid command line", got=error.format_message().rstrip("."), hint=f"see {command} -h"
    )


if __name__ == "__main__":
    main()
