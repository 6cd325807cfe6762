# SPDX-License-Identifier: Apache-2.0
"""Output folders that are complete or as they were: everything is written beside the target, then renamed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from colibri.errors import OutputError

_PERMISSION_HINT = "choose another folder with -o, or change its permissions"


@contextlib.contextmanager
def output_errors(target: Path) -> Iterator[None]:
    """Turn the operating system's refusals to write into OutputError."""
    try:
        yield
    except OSError as error:
        no_space = error.errno in (28, 122)  # ENOSPC, EDQUOT
        raise OutputError(
            str(target),
            expected="a place that can be written",
            got=error.strerror or str(error),
            hint="free space on that disk, or choose another folder with -o" if no_space else _PERMISSION_HINT,
        ) from error


@contextlib.contextmanager
def replaced_folder(target: Path, marker: str) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` on success and vanishes on any failure.

    marker  a file name that shows that an existing `target` is ours to replace: with anything else in it,
            it is refused and left alone.
    """
    with output_errors(target):
        target = target.absolute()
        if target.exists() and not _ours(target, marker):
            raise OutputError(
                str(target),
                expected=f"a new or empty folder, or one that holds {marker}",
                got="a folder with other files" if target.is_dir() else "a file",
                hint="choose another folder with -o",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        with output_errors(target):
            work.chmod(0o777 & ~_umask())
            yield work
            _swap(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


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


def _ours(target: Path, marker: str) -> bool:
    return target.is_dir() and ((target / marker).exists() or not any(target.iterdir()))


def _swap(work: Path, target: Path) -> None:
    """Put `work` in the place of `target`; the old one is moved aside first, and back if that fails."""
    if not target.exists():
        work.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    aside.rmdir()
    target.rename(aside)
    try:
        work.rename(target)
    except OSError:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
