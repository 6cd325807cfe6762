# SPDX-License-Identifier: Apache-2.0
"""One Python target under atheris: `python -m fuzz.harness TARGET [libFuzzer's options] [CORPUS]`.

What must hold of any input: the reader ends by itself or with one of our errors, which says everything (`check`); within memory
and time; and nothing lies beside the folder that it was given. Else the process ends with a report, and libFuzzer writes the
input to a file.
"""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from colibri.errors import ColibriError

from .choices import Choices

TARGETS = ("gguf", "safetensors", "llama2c", "image", "tokenizer_json", "tokenizer_model")
MEMORY_BYTES = 256 << 20
"""Address space that one input may take."""

One = Callable[..., None]


def limit_memory(n_bytes: int) -> None:
    """No more than n_bytes beyond what is mapped now: a length that was believed is a MemoryError."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + n_bytes, resource.RLIM_INFINITY))


def check(error: ColibriError) -> None:
    """An error says where, what was expected, what was found and what to do, in characters that can be shown."""
    assert str(error).isprintable(), repr(str(error))
    for part in (error.where, error.expected, error.got, error.hint):
        assert part, str(error)


def holds(one: One, data: bytes, base: Path) -> None:
    """Give one input to a target; raises whatever is not our error, AssertionError where the error or the folder is wrong."""
    folder = base / "given"
    folder.mkdir()
    try:
        one(Choices(data), folder)
    except ColibriError as error:
        check(error)
    left = sorted(path.name for path in base.iterdir())
    shutil.rmtree(folder)
    assert left == ["given"], left


def main() -> None:
    import atheris

    target, *options = sys.argv[1:]
    # sets of code points are loops of a thousand comparisons that say nothing of the file
    with atheris.instrument_imports(include=["colibri"], exclude=["colibri.text.codepoints"]):
        one = importlib.import_module(f"fuzz.target_{target}").one
    warnings.simplefilter("error")
    base = Path(tempfile.mkdtemp(prefix="colibri-fuzz-"))
    tempfile.tempdir = os.fspath(base)  # what a reader would leave behind is seen
    try:
        holds(one, b"", base)  # the seed itself, and what is made only once
        limit_memory(MEMORY_BYTES)
        atheris.Setup([sys.argv[0], *options], lambda data: holds(one, data, base))
        atheris.Fuzz()
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
