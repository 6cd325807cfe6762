# SPDX-License-Identifier: Apache-2.0
"""colibri boards: boards, cores, regions, what is verified on each."""

from __future__ import annotations

from typing import Any

import click

from colibri.boards import Board, list_boards, load_board
from colibri.cli import options, render

_PROTECTION = {
    "mapping": "read-only, as they are mapped",
    "mpu": "read-only: a store into their region faults and is reported",
    "none": "NOT protected: the board has nothing that makes a store into them fault",
}


@click.command("boards")
@click.argument("name", required=False)
@options.JSON
def command(name: str | None, as_json: bool) -> None:
    """List the boards, or describe one (a name, or the path of a .toml)."""
    boards = [load_board(b) for b in ([name] if name else list_boards())]
    if as_json:
        render.document({"boards": [_json(board) for board in boards]})
        return
    header = ("board", "core", "weights in", "kernels", "toolchains", "verified")
    rows = [
        (b.name, b.cpu, ", ".join(b.weights_regions) or "a mapped file", b.kernels, ", ".join(b.toolchains), b.verified)
        for b in boards
    ]
    print(render.table(header, rows))
    if name:
        regions = [(r.name, f"{r.origin:#010x}", r.length_bytes, r.attributes) for r in boards[0].regions]
        print("\n" + render.table(("region", "origin", "bytes", ""), regions) if regions else "")
        print(f"\nweights: {_PROTECTION[_protection(boards[0])]}")


def _protection(board: Board) -> str:
    """What keeps a store from the weights: a key of _PROTECTION."""
    if board.image == "mapped":
        return "mapping"
    return "none" if board.mpu == "none" else "mpu"


def _json(board: Board) -> dict[str, Any]:
    return {
        "name": board.name,
        "title": board.title,
        "cpu": board.cpu,
        "image": board.image,
        "kernels": board.kernels,
        "toolchains": list(board.toolchains),
        "verified": board.verified,
        "weights_regions": list(board.weights_regions),
        "weights_protection": _protection(board),
        "regions": [
            {"name": r.name, "origin": r.origin, "length": r.length_bytes, "attributes": r.attributes}
            for r in board.regions
        ],
    }
