# SPDX-License-Identifier: Apache-2.0
"""Firmware with one thing wrong, and a golden model with the same thing wrong: it predicts what `verify` must say, to the bit."""

from __future__ import annotations

import contextlib
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np

from colibri.build.firmware import BuildOptions, build
from colibri.build.toolchain import OptLevel, Toolchain, find_toolchain
from colibri.cli import targets
from colibri.cli.verify import golden_tensors
from colibri.cli.workflow import board_of, golden_of
from colibri.data import data_path
from colibri.folder import Folder
from colibri.quantise import Stored
from colibri_sim.golden import GoldenModel
from colibri_sim.golden.trace import TraceRecorder
from colibri_sim.verify import Difference, Tensors, Verdict, verify

Edits = dict[str, tuple[str, str]]
"""Firmware file -> (text that must be there once or more, its replacement)."""


def verdict(folder: Folder, elf: Path) -> Verdict:
    """What `colibri verify` finds out, from an ELF that was built already."""
    return verdict_with(folder, elf, golden_tensors(folder))


def verdict_with(folder: Folder, elf: Path, tensors: Tensors | None) -> Verdict:
    """The same with another source of the tensors at a difference."""
    board = board_of(folder)
    limit = targets.timeout_for(folder, 2 * targets.vectors_positions(folder), None)
    return verify(lambda request: targets.frames(folder, board, elf, request, limit), folder.vectors(), tensors)


def patched_build(
    folder: Folder,
    edits: Edits,
    scratch: Path,
    *,
    flags: Sequence[str] = (),
    app: Path | None = None,
    toolchain: Literal["gcc", "llvm"] = "gcc",
    opt: OptLevel = "1",
    simulator: bool = True,
) -> Path:
    """Build `verify` from a copy of firmware/ with some text replaced; returns the ELF.

    flags  more for the compiler and the linker's driver
    app    a C file in the place of apps/verify.c
    """
    firmware = scratch / "firmware"
    shutil.copytree(data_path("firmware"), firmware)
    for name, (old, new) in edits.items():
        text = (firmware / name).read_text()
        assert old in text, f"{name} no longer holds: {old}"
        (firmware / name).write_text(text.replace(old, new))
    if app is not None:
        shutil.copy(app, firmware / "apps" / "verify.c")

    def path_of(kind: Any) -> Path:
        return firmware if kind == "firmware" else data_path(kind)

    def find(*arguments: Any) -> Toolchain:
        found = find_toolchain(*arguments)
        return replace(found, flags=(*found.flags, *flags), link_flags=(*found.link_flags, *flags))

    with (
        mock.patch("colibri.build.firmware.find_toolchain", find),
        mock.patch("colibri.build.firmware.data_path", path_of),
        mock.patch("colibri.boards.load.data_path", path_of),
    ):
        options = BuildOptions(app="verify", toolchain=toolchain, opt=opt, simulator=simulator)
        return build(folder, board_of(folder), options) / "firmware.elf"


@contextlib.contextmanager
def replaced(**targets_: Any) -> Iterator[None]:
    """Replace functions of the golden model: module__name=function."""
    with contextlib.ExitStack() as stack:
        for name, function in targets_.items():
            module, _, attribute = name.partition("__")
            stack.enter_context(mock.patch(f"colibri_sim.golden.{module}.{attribute}", function))
        yield


def traced(golden: GoldenModel, ids: Sequence[int]) -> TraceRecorder:
    golden.rewind(0)
    recorder = TraceRecorder(golden.config, keep=None)
    golden.forward(list(ids), trace=recorder)
    return recorder


def predicted(folder: Folder, mutant: Callable[[GoldenModel], GoldenModel], **functions: Any) -> Difference:
    """The first difference between the golden model of a folder and the same with something replaced."""
    ids = folder.vectors()["prompts"][0]["ids"]
    right = traced(golden_of(folder), ids)
    unchecked = {f"{module}__check_snapped": lambda *a, **k: None for module in ("operators", "attention", "ffn")}
    with replaced(**unchecked, **functions):
        wrong = traced(mutant(golden_of(folder)), ids)
    for position in range(len(ids)):
        a, b = right.values(position), wrong.values(position)
        for name in right.names:
            want, got = (np.ascontiguousarray(x[name]).view(np.uint32) for x in (a, b))
            at = np.flatnonzero(want != got)
            if at.size:
                bits = (f"{int(want[at[0]]):#010x}", f"{int(got[at[0]]):#010x}")
                return Difference(0, position, name.layer, name.tensor, name.slot, int(at[0]), *bits)
    raise AssertionError("the mutation changes nothing on these ids: it proves nothing")


def same(golden: GoldenModel) -> GoldenModel:
    return golden


def method(**methods: Any) -> Callable[[GoldenModel], GoldenModel]:
    """The golden model with methods of its class replaced."""

    def change(golden: GoldenModel) -> GoldenModel:
        golden.__class__ = type("Mutant", (GoldenModel,), methods)
        return golden

    return change


def weights(change: Callable[[Callable[[str], Stored], str], Stored]) -> Callable[[GoldenModel], GoldenModel]:
    """The golden model with other stored tensors: change(read, name)."""

    def wrap(golden: GoldenModel) -> GoldenModel:
        read = golden._weights
        golden._weights = lambda name: change(read, name)
        return golden

    return wrap


def resealed(image: bytearray) -> bytes:
    """Every checksum of an image made right again (docs/FORMAT.md 1): what only `verify` can see."""

    def number(code: str, offset: int) -> int:
        return int(struct.unpack_from("<" + code, image, offset)[0])

    header, dense, dense_bytes = number("I", 12), number("Q", 88), number("Q", 96)
    directory, entries = number("I", 80), number("I", 84)
    for at in range(directory, directory + 24 * entries, 24):
        offset, n_bytes = number("Q", at), number("I", at + 8)
        struct.pack_into("<I", image, at + 12, zlib.crc32(image[offset : offset + n_bytes]))
    struct.pack_into("<I", image, 44, zlib.crc32(image[header:]))
    struct.pack_into("<I", image, 104, zlib.crc32(image[dense : dense + dense_bytes]))
    struct.pack_into("<I", image, 108, zlib.crc32(image[directory : directory + 24 * entries]))
    struct.pack_into("<I", image, 252, zlib.crc32(image[:252]))
    return bytes(image)
