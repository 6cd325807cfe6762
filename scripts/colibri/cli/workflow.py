# SPDX-License-Identifier: Apache-2.0
"""What several commands do in the same way: import, pack, and turn DIR|CHECKPOINT into a packed folder."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from colibri.boards import Board, list_boards, load_board
from colibri.cli import render
from colibri.cli.options import given_settings, settings_from
from colibri.errors import ImageError, UsageError
from colibri.folder import BOARD, MANIFEST, Folder, is_folder, read_folder
from colibri.importers import load
from colibri.layout.plan import Plan, make_plan, require_fit
from colibri.layout.settings import Settings
from colibri.model import Model
from colibri.output import replaced_folder
from colibri.packing import settings_json, write_folder
from colibri.quantise import Policy
from colibri.tokenizer import Tokenizer
from colibri_sim.golden import GoldenModel
from colibri_sim.prompts import builtin_prompts
from colibri_sim.vectors import Prompt, golden_model, make_vectors


@dataclass(frozen=True)
class Checkpoint:
    """An imported checkpoint and the name its packed form gets."""

    model: Model
    name: str

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The checkpoint's tokenizer, where it has one."""
        raw = self.model.tokenizer_json
        return None if raw is None else Tokenizer(raw, f"{self.model.path}: tokenizer.json")


def read_checkpoint(path: Path) -> Checkpoint:
    """Import a checkpoint. Raises CheckpointError."""
    model = load(path)
    return Checkpoint(model, path.resolve().name)


def board_for(name: str | None, checkpoint: Checkpoint, settings: Settings) -> Board:
    """The board of ``-b``. Without it, UsageError lists those on which the model fits."""
    if name is not None:
        return load_board(name)
    fitting = []
    for candidate in list_boards():
        with contextlib.suppress(UsageError):
            board = load_board(candidate)
            if make_plan(checkpoint.model.config, board, settings).fits:
                fitting.append(candidate)
    raise UsageError(
        "-b",
        expected="a board",
        got="none",
        hint="the model fits on " + ", ".join(fitting) if fitting else "the model fits on no board: see colibri plan",
    )


def pack(checkpoint: Checkpoint, board: Board, settings: Settings, out: Path, prompts: Sequence[Prompt] = ()) -> Plan:
    """Plan, pack and compute the vectors into `out`, complete or as it was. Raises DoesNotFit, OutputError."""
    plan = make_plan(checkpoint.model.config, board, settings)
    require_fit(plan, board, settings)
    policy = settings.policy.resolve(plan.config)
    render.progress(
        f"packing {checkpoint.name} as {policy} for {board.name}: kv {settings.kv}, max_seq {plan.config.max_seq}, "
        f"{plan.layout.image_bytes:,} bytes at {plan.weights_address:#x}"
    )
    with replaced_folder(out, MANIFEST) as work:
        golden = golden_model(checkpoint.model, plan.config, policy, settings.kv)
        chosen = list(prompts) or builtin_prompts(plan.config, checkpoint.tokenizer)
        vectors = make_vectors(golden, chosen, quant=plan.quant, kv=settings.kv)
        write_folder(work, checkpoint.model, checkpoint.name, board, settings, plan, vectors)
    return plan


@contextlib.contextmanager
def packed(target: Path, board_name: str | None, values: dict[str, Any], work: Path | None) -> Iterator[Folder]:
    """The packed folder of DIR|CHECKPOINT: DIR itself, or the checkpoint packed into `work` or a temporary folder.

    Options that decide what is packed are usage errors on a DIR: it was packed already.
    """
    if is_folder(target):
        _refuse_settings(target, board_name, values)
        yield read_folder(target)
        return
    if not target.exists():
        raise UsageError(
            str(target), expected="a checkpoint or a packed folder", got="nothing there", hint="check the path"
        )
    checkpoint = read_checkpoint(target)
    settings = settings_from(values)
    board = board_for(board_name, checkpoint, settings)
    if work is not None:
        if not _reusable(work, checkpoint, board, settings):
            pack(checkpoint, board, settings, work)
        yield read_folder(work)
        return
    with tempfile.TemporaryDirectory(prefix="colibri-") as temporary:
        folder = Path(temporary) / "packed"
        pack(checkpoint, board, settings, folder)
        yield read_folder(folder)


def _refuse_settings(target: Path, board_name: str | None, values: dict[str, Any]) -> None:
    given = ([f"-b {board_name}"] if board_name is not None else []) + given_settings(values)
    if given:
        source = read_folder(target).manifest["source"]["path"]
        raise UsageError(
            given[0].split()[0],
            expected=f"no packing options: {target} was packed already",
            got=" ".join(given),
            hint=f"pack again: colibri pack {source} {' '.join(given)} -o OTHER",
        )


def _reusable(work: Path, checkpoint: Checkpoint, board: Board, settings: Settings) -> bool:
    """Whether `work` holds this checkpoint, packed for this board with these settings."""
    if not is_folder(work):
        return False
    try:
        manifest = read_folder(work).manifest
    except ImageError:
        return False
    plan = make_plan(checkpoint.model.config, board, settings)
    wanted = settings_json(plan, board, settings)
    return bool(
        manifest["source"]["sha256"] == checkpoint.model.source_sha256
        and manifest["settings"] == wanted
        and (work / BOARD).read_bytes() == board.path.read_bytes()
    )


def fits(checkpoint: Path, board: str, values: dict[str, Any]) -> bool:
    """Whether a checkpoint fits a board with these options; an address that the board lacks is a no."""
    try:
        return make_plan(load(checkpoint).config, load_board(board), settings_from(values)).fits
    except UsageError:
        return False


def golden_of(folder: Folder) -> GoldenModel:
    """The golden model of the checkpoint a folder was packed from. Raises UsageError where that has changed or gone."""
    source, settings = folder.manifest["source"], folder.manifest["settings"]
    path = Path(source["path"])
    if not path.exists():
        raise UsageError(
            str(path),
            expected="the checkpoint that was packed",
            got="nothing there",
            hint="give the checkpoint instead",
        )
    model = load(path)
    if model.source_sha256 != source["sha256"]:
        raise UsageError(
            str(path),
            expected=f"the checkpoint that was packed, SHA-256 {source['sha256']}",
            got=model.source_sha256,
            hint="it has changed since: pack it again",
        )
    config = replace(model.config, max_seq=settings["max_seq"])
    return golden_model(model, config, Policy.parse(settings["quant"]).resolve(config), settings["kv"])


def board_of(folder: Folder) -> Board:
    """The board a folder was packed for, from the folder's own copy of its description when it ships with none."""
    name = folder.board_name
    return load_board(name if name in list_boards() else folder.path / BOARD)
