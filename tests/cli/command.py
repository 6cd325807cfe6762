# SPDX-License-Identifier: Apache-2.0
"""Running the command line: in this process, which is fast, or as one, where signals and streams matter."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from colibri.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
CHECKPOINTS = ROOT / "tests" / "oracles" / "data"
MIXTRAL = CHECKPOINTS / "mixtral"
SCHEMAS = ROOT / "docs" / "schemas"
WAIT_SECONDS = 60.0

MAIN = "from colibri.cli.main import main; main()"
RESTORED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A shell's background job, and so its children, ignore SIGINT."""


@dataclass(frozen=True)
class Result:
    """What a command line gave."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output; more or less than one is an error."""
        return json.loads(self.out)

    def error_lines(self) -> tuple[str, str]:
        """The `error:` and the `hint:` line, the last two of standard error; there is exactly one of each."""
        assert len(re.findall("(?m)^error: ", self.err)) == 1, self.err
        assert "Traceback" not in self.err
        error, hint = self.err.rstrip("\n").split("\n")[-2:]
        assert error.startswith("error: ")
        assert hint.startswith("hint:  ")
        return error[7:], hint[7:]


def call(*args: object) -> Result:
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    before = signal.getsignal(signal.SIGTERM)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run([str(arg) for arg in args])
    finally:
        signal.signal(signal.SIGTERM, before)
    return Result(code, out.getvalue(), err.getvalue())


def process(*args: object, program: str = MAIN, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command line as a process of its own session. program: Python that ends with MAIN, to stub parts of it."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": {**os.environ}, **options}
    pipes["env"].pop("PYTHONUNBUFFERED", None)  # it would hide a missing flush
    command = [sys.executable, "-c", RESTORED + program, *map(str, args)]
    return subprocess.Popen(command, start_new_session=True, **pipes)


def finish(running: subprocess.Popen[bytes]) -> Result:
    """Wait for a process and take what it printed."""
    with running:
        out, err = running.communicate(timeout=WAIT_SECONDS)
    return Result(running.returncode, (out or b"").decode(), err.decode())


def wait_for(condition: Callable[[], Any]) -> Any:
    """Wait until a condition holds; return its value."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError("the condition never held")


def validate(document: Any, schema: str) -> None:
    """Check a document against docs/schemas."""
    Draft202012Validator(json.loads((SCHEMAS / f"{schema}.schema.json").read_text("utf-8"))).validate(document)


def program(folder: Path, name: str, script: str) -> Path:
    """Write an executable shell script."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path in it."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def in_session(session: int) -> Iterator[int]:
    """Processes of a session that run."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and alive(int(entry.name)):
            with contextlib.suppress(OSError):
                if os.getsid(int(entry.name)) == session:
                    yield int(entry.name)
