# SPDX-License-Identifier: Apache-2.0
"""colibri doctor: what is missing here, and the command that installs it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Any

import click

from colibri.boards import Board, list_boards, load_board
from colibri.build.toolchain import find_toolchain
from colibri.cli import options, render
from colibri.errors import ToolError
from colibri_sim.cycles.disassembly import PACKAGE as LLVM
from colibri_sim.qemu.machine import find_tool, probe_machine

_SECONDS = 20.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for. package: what installs it, where it is missing."""

    board: str
    what: str
    ok: bool
    detail: str
    package: str | None = None


@click.command("doctor")
@options.JSON
def command(as_json: bool) -> int:
    """Look for the compilers and simulators of every board, and start each simulated machine once."""
    findings = [finding for name in list_boards() for finding in _board(load_board(name))]
    findings += [_estimator(tool) for tool in ("llvm-objdump-19", "llvm-mca-19")]
    missing = sorted({f.package for f in findings if f.package is not None})
    install = f"apt-get install --no-install-recommends {' '.join(missing)}" if missing else None
    if as_json:
        render.document({"ok": not missing, "install": install, "findings": [_json(f) for f in findings]})
    else:
        print(
            render.table(
                ("board", "", "what", "found"),
                [(f.board, "ok" if f.ok else "MISSING", f.what, f.detail) for f in findings],
            )
        )
        print(f"\ninstall what is missing with: {install}" if install else "\nnothing is missing")
    return 0 if all(f.ok for f in findings) else ToolError.exit_code


def _board(board: Board) -> list[Finding]:
    found = []
    for name, wanted in board.toolchains.items():
        try:
            toolchain = find_toolchain(board, name)
            found.append(Finding(board.name, wanted.compiler, True, toolchain.version))
        except ToolError as error:
            found.append(Finding(board.name, wanted.compiler, False, error.got, wanted.package))
    if board.qemu is not None:
        found.append(_simulator(board, board.qemu.binary, board.qemu.package))
    return found


def _estimator(tool: str) -> Finding:
    try:
        return Finding("bench --estimate", tool, True, find_tool(tool, LLVM))
    except ToolError as error:
        return Finding("bench --estimate", tool, False, error.got, LLVM)


def _simulator(board: Board, binary: str, package: str) -> Finding:
    try:
        path = find_tool(binary, package)
    except ToolError as error:
        return Finding(board.name, binary, False, error.got, package)
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError as error:
        return Finding(board.name, binary, False, error.strerror or str(error), package)
    version = text.splitlines()[0] if text else "unknown version"
    if board.qemu is None or board.qemu.machine is None:
        return Finding(board.name, binary, True, version)
    complaint = probe_machine(board, _SECONDS)
    if complaint:
        return Finding(board.name, f"{binary} -M {board.qemu.machine}", False, complaint, package)
    return Finding(board.name, f"{binary} -M {board.qemu.machine}", True, f"starts; {version}")


def _json(finding: Finding) -> dict[str, Any]:
    return vars(finding)
