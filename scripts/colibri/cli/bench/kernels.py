# SPDX-License-Identifier: Apache-2.0
"""bench --kernels: the instructions of each kernel by itself, of the board's kernel set and of the portable one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri.boards import Board
from colibri.boards.kernel_sets import KERNEL_SETS
from colibri.build.config_header import config_header, config_macros
from colibri.build.firmware import BuildOptions, build
from colibri.build.products import ELF
from colibri.cli import render
from colibri.cli.bench.functions import function_names
from colibri.cli.bench.kernel_cases import Case, Cases, cases_for
from colibri.data import data_path
from colibri.errors import NegativeVerdict, NoVerdict
from colibri.folder import CONFIG, IMAGE, Folder, read_build
from colibri.image.kernel_layouts import KernelLayout, layout_of
from colibri.image.placement import lay_out
from colibri.importers import load
from colibri.layout.state_layout import state_layout
from colibri.output import output_errors
from colibri.quantise import Policy
from colibri_sim.operators import BEGIN, END_OF_TOKEN
from colibri_sim.qemu.counter import Block, profile
from colibri_sim.qemu.frames import END

_SECONDS = 300.0
_FORMATS = ("F32", "BF16", "F16", "Q8", "Q8_GROUP", "Q4")


@dataclass(frozen=True)
class Counted:
    """One case with what it executed and wrote; `quantising` where the vector is quantised before."""

    case: Case
    blocks: list[Block]
    quantising: list[Block]
    written: bytes


def measure(board: Board, toolchain: str, opt: str, jobs: int, timeout: float | None) -> dict[str, Any]:
    """The document. Raises NegativeVerdict where the board's kernels and the portable ones write different bits."""
    rows: dict[str, list[dict[str, Any]]] = {}
    written: dict[str, list[bytes]] = {}
    compiler = ""
    for kernels in dict.fromkeys((board.kernels, "portable")):
        with output_errors(Path("the folder for temporary files, TMPDIR")):
            temporary = tempfile.TemporaryDirectory(prefix="colibri-")
        with temporary as place:
            elf, cases = _built(board, kernels, toolchain, opt, jobs, Path(place))
            compiler = read_build(elf.parent)["compiler"]
            counted = _counted(board, elf, cases, Path(place) / IMAGE, timeout)
            names = function_names(elf)
            written[kernels] = [one.written for one in counted]
            rows[kernels] = [row for one in counted for row in _rows(one, kernels, names)]
    _compare(counted, written, board)
    own = [row for row in rows[board.kernels] if board.kernels == "portable" or row["impl"] != "portable"]
    portable = rows["portable"] if board.kernels != "portable" else []
    return {
        "board": board.name,
        "toolchain": toolchain,
        "compiler": compiler,
        "opt": opt,
        "kernels": sorted([*own, *portable], key=_order),
    }


def _built(board: Board, kernels: str, toolchain: str, opt: str, jobs: int, place: Path) -> tuple[Path, Cases]:
    """The application with one kernel set, in a folder of no model: its image is the matrices."""
    layout = layout_of(kernels)
    region = board.default_weights_region
    cases = cases_for(layout, region.length_bytes if region else None)
    (place / IMAGE).write_bytes(cases.image)
    (place / CONFIG).write_text(_config(layout), "utf-8")
    settings = {"weights_address": region.origin if region else 0, "kernels": kernels}
    manifest = {"settings": settings, "config_hash": "", "image": {"sha256": ""}}
    options = BuildOptions("kernels", toolchain, opt, jobs)  # type: ignore[arg-type]  # click's choices
    render.progress(f"building the {kernels} kernels for {board.name} with {toolchain} at -O{opt}")
    return build(Folder(place, manifest), board, options) / ELF, cases


def _config(layout: KernelLayout) -> str:
    """model_config.h of a small model, with every format switched on; its dimensions do not matter here."""
    config = load(data_path("weights") / "micro-moe").config
    policy = Policy.parse("q8").resolve(config)
    image, state = lay_out(config, policy, 64, layout), state_layout(config, policy, "f32", layout)
    macros = [line for line in config_macros(config, image, state, "f32") if "COLIBRI_USE_" not in line]
    macros += [f"#define COLIBRI_USE_{name} 1" for name in _FORMATS]
    return config_header(macros, title="every format", weights_address=0, prefix=None)


def _counted(board: Board, elf: Path, cases: Cases, image: Path, timeout: float | None) -> list[Counted]:
    run = profile(
        board,
        elf,
        b"".join(case.request() for case in cases.cases) + END,
        (BEGIN, END_OF_TOKEN),
        image=image if board.image == "mapped" else None,
        timeout_s=_SECONDS if timeout is None else timeout,
    )
    expected = sum(1 + case.quantises for case in cases.cases)
    if len(run.windows) != expected or len(run.frames) != len(cases.cases):
        raise NoVerdict(
            board.name,
            expected=f"{expected} kernels measured",
            got=f"{len(run.windows)}, and {len(run.frames)} answers",
            hint="this is a bug of colibri, please report it",
        )
    windows, frames = iter(run.windows), iter(run.frames)
    counted = []
    for case in cases.cases:
        quantising = next(windows) if case.quantises else []
        counted.append(Counted(case, next(windows), quantising, next(frames).payload))
    return counted


def _rows(one: Counted, kernels: str, name_of: Callable[[int], str]) -> list[dict[str, Any]]:
    case = one.case
    common = {
        "dtype": case.matrix.format.kind,
        "group": case.matrix.format.group or None,
        "rows": case.matrix.rows,
        "cols": case.matrix.cols,
    }
    parts = {case.operation: one.blocks} | ({"quantise": one.quantising} if one.quantising else {})
    rows = []
    for operation, blocks in parts.items():
        n = sum(block.executed * block.n_insns for block in blocks)
        called = {name_of(block.start) for block in blocks}
        rows.append(
            {
                "op": operation,
                **common,
                "impl": _implementation(called, kernels),
                "instructions": n,
                "macs": case.macs,
                "instructions_per_mac": round(n / case.macs, 4) if case.macs else None,
            }
        )
    return rows


def _implementation(called: set[str], kernels: str) -> str:
    """The kernel set whose functions ran, by their names; the best of those that the board's table may take them from."""
    for name in KERNEL_SETS[kernels]:
        if any(function.partition(".")[0].endswith(f"_{name}") for function in called):
            return name
    return "portable"


def _compare(counted: Sequence[Counted], written: dict[str, list[bytes]], board: Board) -> None:
    for one, bits, portable in zip(counted, written[board.kernels], written["portable"], strict=True):
        if bits != portable:
            m = one.case.matrix
            raise NegativeVerdict(
                f"{board.name}: {one.case.operation} of {m.format}, {m.rows} x {m.cols}",
                expected="the bits of the portable kernels",
                got="others",
                hint=f"this is a bug of the kernel set {board.kernels}, please report it",
            )


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["macs"] == 0, row["op"], row["dtype"], row["group"] or 0, -row["rows"], row["cols"], row["impl"])


def table(document: dict[str, Any]) -> str:
    """Every kernel, one a line."""
    fields = ("op", "dtype", "group", "rows", "cols", "impl", "instructions", "macs", "instructions_per_mac")
    rows = [["" if row[name] is None else row[name] for name in fields] for row in document["kernels"]]
    head = f"{document['board']}, {document['compiler']} at -O{document['opt']}; instructions under QEMU, not cycles\n"
    return head + render.table(("operation", *fields[1:-1], "per MAC"), rows)
