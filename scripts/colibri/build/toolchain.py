# SPDX-License-Identifier: Apache-2.0
"""The compilers: which one, which version, and the flags that keep the arithmetic contract."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from colibri.boards import Board
from colibri.errors import OutputError, ToolError

ToolchainName = Literal["gcc", "llvm"]
OptLevel = Literal["0", "1", "2", "3", "s"]

STRICT = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
CONTRACT = ["-ffp-contract=off", "-fno-math-errno"]
"""docs/NUMERICS.md 1; with NO_VECTORISE, no compiler changes a bit."""
NO_VECTORISE = {"gcc": ["-fno-tree-vectorize"], "llvm": ["-fno-vectorize", "-fno-slp-vectorize"]}
_SECTIONS = ["-ffunction-sections", "-fdata-sections", "-fno-common", "-g", "-fno-asynchronous-unwind-tables"]
_MINIMUM_MAJOR = {"gcc": 10, "llvm": 16}


@dataclass(frozen=True)
class Toolchain:
    """A compiler that was found for a board. version as `gcc-12.2`, the key of linker/budgets.toml."""

    name: ToolchainName
    version: str
    compiler: str
    linker: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    def compile_flags(self, opt: OptLevel) -> list[str]:
        """Everything a source of ours is compiled with, include paths apart."""
        return [*self.flags, *STRICT, f"-O{opt}", *CONTRACT, *NO_VECTORISE[self.name], *_SECTIONS]


def find_toolchain(board: Board, name: ToolchainName) -> Toolchain:
    """Find the board's compiler and the linker driver. Raises UsageError, ToolError."""
    wanted = board.toolchain(name)
    compiler = _which(wanted.compiler, wanted.package)
    version = _version(compiler, name)
    # clang has no bare-metal run-time library of its own here: GCC's driver links, with GCC's libgcc
    driver = board.toolchains.get("gcc", wanted)
    linker = _which(driver.compiler, driver.package)
    return Toolchain(name, version, compiler, linker, tuple(wanted.flags), (*driver.flags, *driver.link_flags))


def _which(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ToolError(
            program,
            expected=f"the compiler {program} on the PATH",
            got="none",
            hint=f"apt-get install --no-install-recommends {package}",
        )
    return found


def _version(compiler: str, name: ToolchainName) -> str:
    text = run([compiler, "--version"], "the compiler's version").partition("\n")[0].strip() or "nothing"
    match = re.search(r"(\d+)\.(\d+)(?:\.\d+)?", text)
    major = int(match.group(1)) if match else 0
    if match is None or major < _MINIMUM_MAJOR[name]:
        raise ToolError(
            compiler,
            expected=f"{name} {_MINIMUM_MAJOR[name]} or newer",
            got=text,
            hint="install a newer compiler (colibri doctor)",
        )
    return f"{name}-{match.group(1)}.{match.group(2)}"


def run(command: list[str], what: str, cwd: Path | None = None) -> str:
    """Run a compiler and return what it says on standard output.

    cwd  the folder to run in. Compilers record it under the name that PWD gives it, here one that is the same everywhere.

    Raises ToolError with its first complaint; OutputError where that is a full disk.
    """
    env = {**os.environ, "PWD": "/proc/self/cwd"}
    try:
        result = subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise ToolError(
            command[0],
            expected="a program that this machine can start",
            got=error.strerror or str(error),
            hint="install it again (colibri doctor)",
        ) from error
    if result.returncode and os.strerror(errno.ENOSPC) in result.stderr:
        raise OutputError(
            f"{Path(command[0]).name}: {what}",
            expected="a place that can be written",
            got=_first_complaint(result.stderr),
            hint="free space where the output goes and in the folder for temporary files (TMPDIR)",
        )
    if result.returncode:
        raise ToolError(
            f"{Path(command[0]).name}: {what}",
            expected="success",
            got=_first_complaint(result.stderr) or f"exit code {result.returncode}",
            hint="the command was: " + " ".join(command),
        )
    return result.stdout


def _first_complaint(stderr: str) -> str:
    """The line that says what is wrong: collect2 only says that ld said so."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith("collect2:")]
    telling = [line for line in lines if re.search(r"error|undefined|multiple|overflow|cannot|not fit|colibri:", line)]
    return (telling or lines or [""])[0]
