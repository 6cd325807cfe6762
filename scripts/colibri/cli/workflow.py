# SPDX-License-Identifier: Apache-2.0
"""What several commands do in the same way: import, pack, and turn DIR|CHECKPOINT into a packed folder."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.random  # noqa: F401  (here, with the other imports, where signals are held; numpy itself imports it late)

from colibri.boards import KERNEL_SETS, Board, list_boards, load_board
from colibri.cli import render
from colibri.cli.options import given_settings, reading_from, reading_words, settings_from
from colibri.errors import CheckpointError, DoesNotFit, ImageError, UsageError
from colibri.folder import MANIFEST, Folder, is_folder, read_folder
from colibri.image.selftest import POSITIONS, SelfTest
from colibri.importers import AS_IT_SAYS, load
from colibri.layout.plan import Plan, make_plan, require_fit
from colibri.layout.settings import Settings
from colibri.layout.text import check_text
from colibri.model import Model, Reading
from colibri.output import output_errors, replaced_folder
from colibri.packing import config_digest, reading_json, settings_json, write_folder
from colibri.quantise import Policy
from colibri.text.device import DeviceTokenizer, for_device
from colibri.tokenizer import Tokenizer
from colibri_sim.golden import GoldenModel
from colibri_sim.prompts import builtin_prompts
from colibri_sim.vectors import Prompt, golden_model, make_selftest, make_vectors


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

    def plan(self, board: Board, settings: Settings) -> Plan:
        """The plan for a board. Raises UsageError."""
        return make_plan(self.model.config, board, settings, device_tokenizer(self.model))

    def require_fit(self, plan: Plan, board: Board, settings: Settings) -> None:
        """Raise DoesNotFit where a plan does not fit its board."""
        require_fit(plan, board, settings, device_tokenizer(self.model))


def device_tokenizer(model: Model) -> DeviceTokenizer | None:
    """A model's tokenizer for the device; None: it has none at all."""
    if model.tokenizer_json is not None and model.config.encoder is not None:
        return DeviceTokenizer(None, "a prompt that is an encoder's source, which the application text does not take")
    return None if model.tokenizer_json is None else for_device(model.tokenizer_json)


def read_checkpoint(path: Path, reading: Reading = AS_IT_SAYS) -> Checkpoint:
    """Import a checkpoint; its name is its folder's, without what cannot be printed. Raises CheckpointError, UsageError."""
    if is_folder(path):
        origin = read_folder(path).origin("checkpoint")
        raise UsageError(
            str(path),
            expected="a checkpoint",
            got="a folder that `colibri pack` wrote",
            hint=f"it was packed from {origin}" if origin else "give the checkpoint it was packed from",
        )
    model = load(path, reading)
    name = model.path.resolve().name
    return Checkpoint(model, "".join(c if c.isprintable() else "?" for c in name))


def board_for(name: str | None, checkpoint: Checkpoint, settings: Settings) -> Board:
    """The board of ``-b``. Without it, UsageError lists those on which the model fits."""
    if name is not None:
        return load_board(name)
    fitting = _fitting(checkpoint.model, settings)
    raise UsageError(
        "-b",
        expected="a board",
        got="none",
        hint="the model fits on " + ", ".join(fitting) if fitting else "the model fits on no board: see colibri plan",
    )


def pack(checkpoint: Checkpoint, board: Board, settings: Settings, out: Path, prompts: Sequence[Prompt] = ()) -> Plan:
    """Plan, pack and compute the vectors into `out`, complete or as it was. Raises DoesNotFit, OutputError."""
    plan = checkpoint.plan(board, settings)
    checkpoint.require_fit(plan, board, settings)
    policy = settings.policy.resolve(plan.config)
    render.progress(
        f"packing {checkpoint.name} as {policy} for {board.name}: kv {settings.kv}, max_seq {plan.config.max_seq}, "
        f"{plan.layout.image_bytes:,} bytes at {plan.weights_address:#x}"
    )
    with replaced_folder(out, MANIFEST) as work:
        golden = golden_model(checkpoint.model, plan.config, policy, settings.kv)
        chosen = list(prompts) or _builtin_prompts(plan, checkpoint)
        vectors = make_vectors(golden, chosen, quant=plan.quant, kv=settings.kv)
        selftest = SelfTest(*make_selftest(golden, POSITIONS))
        write_folder(work, checkpoint.model, checkpoint.name, board, settings, plan, vectors, selftest)
    return plan


def _builtin_prompts(plan: Plan, checkpoint: Checkpoint) -> list[Prompt]:
    """The built-in prompts. Raises CheckpointError where the tokenizer is not this model's."""
    prompts = builtin_prompts(plan.config, checkpoint.tokenizer)
    for prompt in prompts:
        outside = next((i for i in prompt.ids if not 0 <= i < plan.config.vocab_size), None)
        if outside is not None or not prompt.ids:
            raise CheckpointError(
                f"{checkpoint.model.path}: tokenizer.json",
                expected=f"ids from 0 to {plan.config.vocab_size - 1}, the vocabulary of config.json",
                got="no ids for a text" if outside is None else f"id {outside}",
                hint="take the tokenizer.json that belongs to this model, or move it away to work with ids",
            )
    return prompts


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
    checkpoint = read_checkpoint(target, reading_from(values))
    settings = settings_from(values)
    board = board_for(board_name, checkpoint, settings)
    if work is not None:
        if not _reusable(work, checkpoint, board, settings):
            pack(checkpoint, board, settings, work)
        yield read_folder(work)
        return
    with contextlib.ExitStack() as stack:
        with output_errors(Path("the folder for temporary files, TMPDIR")):
            temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="colibri-"))
        folder = Path(temporary) / "packed"
        pack(checkpoint, board, settings, folder)
        yield read_folder(folder)


def packed_each(
    target: Path, boards: Sequence[str | None], values: dict[str, Any], work: Path | None
) -> Iterator[Folder]:
    """The packed folder of each board in turn; several boards each have their own place in `work`."""
    for name in boards:
        if name is not None:
            load_board(name)  # all are known before the first is built
    for name in boards:
        place = work / name.replace("/", "_") if work and name and len(boards) > 1 else work
        with packed(target, name, values, place) as folder:
            yield folder


def _refuse_settings(target: Path, board_name: str | None, values: dict[str, Any]) -> None:
    given = {**({} if board_name is None else {"-b": board_name}), **given_settings(values)}
    if given:
        folder = read_folder(target)
        wanted = {**_settings_of(folder), **given}
        if given.get("-b", folder.board_name) != folder.board_name:  # what belongs to the board it was packed for
            wanted = {k: v for k, v in wanted.items() if k in given or k not in ("--weights-addr", "--kernels")}
        source = folder.origin("checkpoint") or "CHECKPOINT"
        command = ["colibri", "pack", str(source), *(word for option in wanted.items() for word in _words(*option))]
        raise UsageError(
            next(iter(given)),
            expected=f"no packing options: {target} was packed already",
            got=" ".join(word for option in given.items() for word in _words(*option)),
            hint=f"pack again: {shlex.join(command)} -o OTHER",
        )


def _words(option: str, value: str) -> list[str]:
    """An option as words of a command line; that of one axis is ``--set KEY``."""
    name, _, key = option.partition(" ")
    return [name, f"{key}={value}" if key else value]


def _settings_of(folder: Folder) -> dict[str, str]:
    """The options that would pack this folder again, defaults left out."""
    settings, board = folder.manifest["settings"], board_of(folder)
    name = board.name if board.name in list_boards() else str(folder.origin("board") or folder.board_file)
    options = {"-b": name, "-q": folder.quant, "--max-seq": str(settings["max_seq"])}
    if settings["max_source"] is not None:
        options["--max-source"] = str(settings["max_source"])
    if settings["kv"] != "f32":
        options["--kv"] = settings["kv"]
    if settings["weights_address"] not in {0, *(board.region(name).origin for name in board.weights_regions)}:
        options["--weights-addr"] = f"{settings['weights_address']:#x}"
    if settings["expert_align"] != Settings().expert_align_bytes(board):
        options["--expert-align"] = str(settings["expert_align"])
    if settings["kernels"] != board.kernels:
        options["--kernels"] = settings["kernels"]
    if settings["prefix"] is not None:
        options["--name"] = settings["prefix"]
    if folder.text_bytes is not None:
        options["--text"] = str(folder.text_bytes)
    return options | reading_words(folder.reading)


def _reusable(work: Path, checkpoint: Checkpoint, board: Board, settings: Settings) -> bool:
    """Whether `work` holds this checkpoint, packed for this board with these settings."""
    if not is_folder(work):
        return False
    model = checkpoint.model
    plan = checkpoint.plan(board, settings)
    try:
        folder = read_folder(work)
        origin = folder.origin("checkpoint")
    except ImageError:
        return False
    manifest = folder.manifest
    return bool(
        manifest["source"]["sha256"] == model.source_sha256
        and manifest["reading"] == reading_json(model)
        and manifest["settings"] == settings_json(plan, board, settings)
        and manifest["config_hash"] == config_digest(plan, settings).hex()
        # what the source's hash does not cover
        and manifest["generation"] == vars(model.generation)
        and manifest["eos_ids"] == list(plan.config.eos_ids)
        and folder.tokenizer_json() == model.tokenizer_json
        and origin == model.path.resolve()
        and folder.board_file.is_file()
        and folder.board_file.read_bytes() == board.path.read_bytes()
    )


def fitting_boards(checkpoint: Path, values: dict[str, Any]) -> list[str]:
    """The boards on which a checkpoint fits with these options. Raises DoesNotFit where it fits on none."""
    names = _fitting(read_checkpoint(checkpoint, reading_from(values)).model, settings_from(values))
    if not names:
        raise DoesNotFit(
            str(checkpoint),
            expected="a model that fits at least one board with these options",
            got="one that fits none",
            hint=f"colibri plan {shlex.quote(str(checkpoint))} -b BOARD says by how much, and what would make it fit",
        )
    return names


def _fitting(model: Model, settings: Settings) -> list[str]:
    settings.apply(model.config)  # what is wrong on every board is said, not passed over
    tokenizer = device_tokenizer(model)
    check_text(tokenizer, settings.text_bytes)
    names = []
    for name in list_boards():
        with contextlib.suppress(UsageError):  # an address that this board lacks
            if make_plan(model.config, load_board(name), settings, tokenizer).fits:
                names.append(name)
    return names


def golden_of(folder: Folder) -> GoldenModel:
    """The golden model of the checkpoint a folder was packed from. Raises UsageError where that has changed or gone."""
    sha256, settings = folder.manifest["source"]["sha256"], folder.manifest["settings"]
    path = folder.origin("checkpoint")
    if path is None or not path.exists():
        raise UsageError(
            str(path or folder.path),
            expected="the checkpoint that was packed",
            got="nothing there" if path else "no word on where it lies",
            hint="give the checkpoint instead",
        )
    model = load(path, folder.reading)
    if model.source_sha256 != sha256:
        raise UsageError(
            str(path),
            expected=f"the checkpoint that was packed, SHA-256 {sha256}",
            got=model.source_sha256,
            hint="it has changed since: pack it again",
        )
    config = replace(model.config, max_seq=settings["max_seq"])
    if config.encoder is not None:
        config = replace(config, encoder=replace(config.encoder, max_source=settings["max_source"]))
    return golden_model(model, config, Policy.parse(settings["quant"]).resolve(config), settings["kv"])


def board_of(folder: Folder) -> Board:
    """The board a folder was packed for: Colibri's own, or the user's, or the folder's copy where that has gone.

    Raises ImageError where the description has changed since, so that the plan no longer holds, and where the image is laid out
    for kernels that the board does not run.
    """
    name, origin = folder.board_name, folder.origin("board")
    if not folder.board_file.is_file():
        raise ImageError(
            str(folder.board_file), expected="a file", got="no such file", hint="pack the checkpoint again"
        )
    copy = folder.board_file.read_bytes()
    own = load_board(name).path if name in list_boards() else None
    candidates = [path for path in (origin, own) if path is not None and path.is_file()]
    same = next((path for path in candidates if path.read_bytes() == copy), None)
    if candidates and same is None:
        raise ImageError(
            str(folder.path),
            expected=f"a folder packed for {candidates[0]} as it is now",
            got="one packed for another version of it",
            hint="the description has changed since: pack the checkpoint again",
        )
    board = load_board(name if same is not None and same == own else same or folder.board_file)
    if folder.kernels not in KERNEL_SETS[board.kernels]:
        source = folder.origin("checkpoint") or "CHECKPOINT"
        command = [
            "colibri",
            "pack",
            str(source),
            "-b",
            name if same == own else str(same or folder.board_file),
            "-q",
            folder.quant,
            "-o",
            str(folder.path),
        ]
        raise ImageError(
            str(folder.path),
            expected=f"an image laid out for kernels that {name} runs: {', '.join(KERNEL_SETS[board.kernels])}",
            got=f"one for {folder.kernels}",
            hint=f"pack again: {shlex.join(command)}",
        )
    return board
