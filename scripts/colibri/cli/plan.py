# SPDX-License-Identifier: Apache-2.0
"""colibri plan: fits or does not, before anything is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from colibri.boards import list_boards, load_board
from colibri.cli import options, render, workflow
from colibri.errors import DoesNotFit, UsageError
from colibri.layout.plan import Part, Plan
from colibri.layout.text import TextUse
from colibri.layout.uses import depends_on_data


@click.command("plan")
@options.CHECKPOINT
@options.BOARD
@options.settings_options
@options.JSON
def command(checkpoint: Path, board: str | None, as_json: bool, **values: Any) -> int:
    """Say whether CHECKPOINT fits a board: flash and RAM by part, bytes and MACs per token. Without -b: all boards."""
    source = workflow.read_checkpoint(checkpoint, options.reading_from(values))
    settings = options.settings_from(values)
    if board is None:
        return _all_boards(source, settings, as_json)
    target = load_board(board)
    plan = source.plan(target, settings)
    if as_json:
        render.document(plan.to_json())
        return 0 if plan.fits else DoesNotFit.exit_code
    print(_text(plan))
    source.require_fit(plan, target, settings)
    return 0


def _all_boards(source: workflow.Checkpoint, settings: Any, as_json: bool) -> int:
    plans, refused = [], []
    for name in list_boards():
        try:
            plans.append(source.plan(load_board(name), settings))
        except UsageError as error:
            refused.append((name, error))
    if not plans:
        raise refused[0][1]
    if as_json:
        render.document({"plans": [plan.to_json() for plan in plans]})
    else:
        rows = [(p.board, p.quant, _verdict(p), _total(p.flash), _total(p.ram)) for p in plans]
        print(render.table(("board", "quant", "fits", "flash", "RAM"), rows))
    return 0 if any(plan.fits for plan in plans) else DoesNotFit.exit_code


def _verdict(plan: Plan) -> str:
    over = plan.overflows()
    return "yes" if not over else f"no: {over[0].name} by {over[0].used - over[0].length:,}"


def _total(parts: dict[str, Part]) -> int:
    return sum(part.bytes for part in parts.values())


def _text(plan: Plan) -> str:
    rows: list[tuple[object, ...]] = []
    for title, parts in (("flash", plan.flash), ("RAM", plan.ram)):
        rows += [(title, name, part.bytes, part.kind) for name, part in parts.items()]
        rows.append((title, "total", _total(parts), ""))
    regions = [
        (r.name, f"{r.origin:#010x}", r.length, r.used, f"{100 * r.used / r.length:.1f} %") for r in plan.regions
    ]
    most = "at most " if depends_on_data(plan.config) else ""
    lines = [
        f"{plan.board}, {plan.quant}: {'fits' if plan.fits else 'does not fit'}",
        "",
        render.table(("", "part", "bytes", "kind"), rows),
        "",
        *([render.table(("region", "origin", "length", "used", ""), regions), ""] if regions else []),
        f"weights at {plan.weights_address:#x}" if plan.weights_region else "weights mapped from a file",
        f"{most}{plan.macs_per_token:,} multiply-accumulates and {plan.weight_bytes_read_per_token:,} bytes of weights per token",
        *_tokenizer(plan.text),
    ]
    return "\n".join(lines)


def _tokenizer(text: TextUse | None) -> list[str]:
    """What the tokenizer takes, in the image or if it were there."""
    if text is None:
        return []
    if text.tokenizer.tables is None:
        return [f"text on the host only: the device's tables cannot express {text.tokenizer.reason}"]
    counts = sorted(text.instructions_per_character().items())
    measured = ", ".join(f"{n:,.0f} ({compiler} -O2)" for compiler, n in counts)
    return [
        f"text on the device{'' if text.in_image else f', with --text {text.prompt_bytes}'}: "
        f"{text.table_bytes:,} bytes of tables and at most {text.code_bytes:,} of code in flash; "
        f"{text.array_bytes:,} bytes of RAM for prompts of {text.prompt_bytes:,}",
        f"instructions a character of English text: {measured or 'not measured on this board'}",
    ]
