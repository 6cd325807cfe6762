# SPDX-License-Identifier: Apache-2.0
"""What a link gives: the ELF measured against the plan, and its code as .bin and .hex."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from colibri.audit.elf import Elf
from colibri.audit.mapfile import contributions, engine_bytes
from colibri.boards import Board
from colibri.errors import NegativeVerdict
from colibri.folder import IMAGE, Folder
from colibri.image.hexfile import write_hex
from colibri.layout.budget import budget

ELF, MAP = "firmware.elf", "firmware.map"
WEIGHTS = ".colibri_weights"


def write_products(work: Path, folder: Folder, board: Board, compiler: str, app: str) -> dict[str, Any]:
    """Measure firmware.elf, hold it against the plan, and write firmware.bin, firmware.hex and all.hex.

    Returns the measurements for build.json. Raises NegativeVerdict where the plan was wrong.
    """
    elf = Elf.read(work / ELF)
    engine = engine_bytes(contributions((work / MAP).read_text()))
    if board.image == "mapped":
        return {"engine": engine}
    measured = measure(elf)
    check_against_plan(elf, measured, folder, board, compiler, app)
    code = [(address, data) for address, data in elf.segments if address != _weights_address(folder)]
    start = min(address for address, _ in code)
    flat = bytearray()
    for address, data in sorted(code):
        flat += b"\xff" * (address - start - len(flat)) + data
    (work / "firmware.bin").write_bytes(flat)
    weights = (_weights_address(folder), (folder.path / IMAGE).read_bytes())
    for name, segments in (("firmware.hex", code), ("all.hex", sorted([*code, weights]))):
        with (work / name).open("wb") as file:
            write_hex(file, segments)
    return {"measured": measured, "engine": engine}


def measure(elf: Elf) -> dict[str, int]:
    """Bytes of code and constants, of statics (the three next apart), of state, logits, text's arrays, and stack."""
    state, logits, text = (elf.symbol_bytes(f"colibri_app_{name}") for name in ("state", "logits", "text"))
    sections = [s for s in elf.sections if s.name != WEIGHTS]
    stack = sum(s.bytes for s in sections if "stack" in s.name)
    data = sum(s.bytes for s in sections if s.writable and "stack" not in s.name)
    return {
        "code": sum(s.bytes for s in sections if not s.writable),
        "statics": data - state - logits - text,
        "state": state,
        "logits": logits,
        "text": text,
        "stack": stack,
    }


def check_against_plan(
    elf: Elf, measured: dict[str, int], folder: Folder, board: Board, compiler: str, app: str
) -> None:
    """Exact parts must be equal and bounds must hold. Raises NegativeVerdict naming the first that is not."""
    plan = folder.manifest["plan"]
    ram = {name: part["bytes"] for name, part in plan["ram"]["parts"].items()}
    weights = elf.section(WEIGHTS)
    exact = {
        "weights address": (_weights_address(folder), weights.address if weights else None),
        "weights bytes": (folder.manifest["image"]["bytes"], weights.bytes if weights else None),
        "state": (ram["kv_cache"] + ram["activations"], measured["state"]),
        "logits": (ram["logits"], measured["logits"]),
        "text": (ram.get("text", 0) if app == "text" else 0, measured["text"]),
    }
    for name, (planned, got) in exact.items():
        if planned != got:
            raise NegativeVerdict(
                f"{elf.path.name}: {name}",
                expected=f"{planned}, exactly as planned",
                got=str(got),
                hint="plan and link disagree: this is a bug of colibri, please report it",
            )
    bounds = budget(board.name, compiler, app)
    tables = plan["offset_table_bytes"]
    stack = board.stack[app] + board.stack["fault"]
    statics = bounds.static_bytes + plan["app_array_bytes"][app]
    limits = {"code": bounds.code_bytes_of(plan["extra_axes"]) + tables, "statics": statics, "stack": stack}
    for name, limit in limits.items():
        if measured[name] > limit:
            raise NegativeVerdict(
                f"{elf.path.name}: {name} with {compiler} on {board.name}",
                expected=f"at most the planned bound of {limit} bytes",
                got=f"{measured[name]} bytes",
                hint="raise the bound in linker/budgets.toml, or build with -O2 or -Os",
            )


def _weights_address(folder: Folder) -> int:
    return int(folder.manifest["settings"]["weights_address"])
