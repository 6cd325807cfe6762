# SPDX-License-Identifier: Apache-2.0
"""Output folders that are complete or as they were: everything is written beside the target, then renamed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from colibri.errors import OutputError

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

_PERMISSION_HINT = "choose another folder with -o, or change its permissions"


@contextlib.contextmanager
def output_errors(target: Path) -> Iterator[None]:
    """Turn the operating system's refusals to write into OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            str(target),
            expected="a place that can be written",
            got=error.strerror or str(error),
            hint="free space on that disk, or choose another folder with -o"
            if error.errno in NO_SPACE
            else _PERMISSION_HINT,
        ) from error


@contextlib.contextmanager
def replaced_folder(target: Path, marker: str) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` on success and vanishes on any failure.

    marker  a file name that shows that an existing `target` is ours to replace: with anything else in it,
            it is refused and left alone.
    """
    with output_errors(target):
        real = Path(os.path.realpath(target))
        with _locked(real.parent) if real.parent.is_dir() else contextlib.nullcontext():
            _check(real, marker)
        if Path.cwd().is_relative_to(real):
            raise _refused(real, "a folder that can be renamed", "the current folder", "start colibri from outside it")
        new_parents = [parent for parent in real.parents if not parent.exists()]
        # named before it is made, so that no signal can fall between making it and knowing it
        work = _beside(real)
    try:
        with output_errors(target):
            real.parent.mkdir(parents=True, exist_ok=True)
            work.mkdir()
            yield work
            _swap(work, real, marker)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        for parent in new_parents:
            with contextlib.suppress(OSError):
                parent.rmdir()  # only an empty one


@contextlib.contextmanager
def replaced_file(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target` that is renamed to it on success and removed on failure."""
    temporary = target.with_name(f".{target.name}.partial")
    try:
        with output_errors(target):
            yield temporary
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _check(target: Path, marker: str) -> None:
    """Refuse a target that is not ours to replace."""
    parent = next(parent for parent in target.parents if parent.exists())
    if not parent.is_dir():
        raise _refused(target, "a path below a folder", f"{parent}, which is a file", "choose another folder with -o")
    ours = target.is_dir() and ((target / marker).exists() or not any(target.iterdir()))
    if target.exists() and not ours:
        raise _refused(
            target,
            f"a new or empty folder, or one that holds {marker}",
            "a folder with other files" if target.is_dir() else "a file",
            "choose another folder with -o",
        )


def _refused(target: Path, expected: str, got: str, hint: str) -> OutputError:
    return OutputError(str(target), expected=expected, got=got, hint=hint)


def _beside(target: Path) -> Path:
    return target.parent / f".colibri-{secrets.token_hex(6)}"


def _swap(work: Path, target: Path, marker: str) -> None:
    """Put `work` in the place of `target`; the old one is moved aside first, and back if that fails."""
    with _locked(target.parent):
        _check(target, marker)
        if not target.exists():
            work.rename(target)
            return
        aside = _beside(target)
        try:
            target.rename(aside)
            work.rename(target)
        finally:
            if aside.exists() and not target.exists():
                aside.rename(target)
            shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One at a time, where the file system has locks: two commands may write the same folder at once."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
