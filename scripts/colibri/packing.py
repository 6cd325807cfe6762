# SPDX-License-Identifier: Apache-2.0
"""Writing a packed folder (colibri.folder says what is in one)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from colibri.boards import Board
from colibri.build.config_header import config_hash, config_header, config_macros
from colibri.folder import CONFIG, DEVICE_TOKENIZER, HEX, IMAGE, MANIFEST, ORIGIN, SCHEMA_VERSION, TOKENIZER, VECTORS
from colibri.image.hexfile import LIMIT as HEX_LIMIT
from colibri.image.hexfile import write_hex
from colibri.image.selftest import SelfTest
from colibri.image.writer import Written, write_image
from colibri.layout.plan import Plan
from colibri.layout.settings import Settings
from colibri.model import Model
from colibri.text.device import DeviceTokenizer, for_device


def write_folder(
    folder: Path,
    model: Model,
    name: str,
    board: Board,
    settings: Settings,
    plan: Plan,
    vectors: dict[str, Any],
    selftest: SelfTest,
) -> None:
    """Write every file of a packed folder into an empty one. vectors, selftest: what the golden model says."""
    policy = settings.policy.resolve(plan.config)
    device = None if model.tokenizer_json is None else for_device(model.tokenizer_json)
    macros = _macros(plan, settings)
    digest = config_hash(macros)
    with (folder / IMAGE).open("w+b") as file:
        written = write_image(
            file,
            replace(model, config=plan.config),
            policy,
            plan.layout,
            selftest=selftest,
            config_hash=digest,
            load_address=plan.weights_address,
            name=name,
            tokenizer=(device.tables if device else None) or b"",
        )
    if board.weights_regions and plan.weights_address + plan.layout.image_bytes <= HEX_LIMIT:
        with (folder / HEX).open("wb") as file:
            write_hex(file, [(plan.weights_address, (folder / IMAGE).read_bytes())])
    title = f"{name} as {plan.quant} for {board.name}"
    header = config_header(macros, title=title, weights_address=plan.weights_address, prefix=settings.prefix)
    (folder / CONFIG).write_text(header, "utf-8")
    if model.tokenizer_json is not None:
        (folder / TOKENIZER).write_bytes(model.tokenizer_json)
        if device is not None and device.tables is not None:
            (folder / DEVICE_TOKENIZER).write_bytes(device.tables)
    (folder / VECTORS).write_text(json.dumps(vectors, separators=(",", ":")) + "\n")
    manifest = _manifest(model, name, board, settings, plan, written, digest, device)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    shutil.copyfile(board.path, folder / f"{board.name}.toml")
    origin = {"checkpoint": str(model.path.resolve()), "board": str(board.path.resolve())}
    if _has_family_file(model):
        origin["family"] = str(Path(model.reading.family or "").resolve())
    (folder / ORIGIN).write_text(json.dumps(origin, indent=1) + "\n")


def config_digest(plan: Plan, settings: Settings) -> bytes:
    """The config hash that a folder of this plan has."""
    return config_hash(_macros(plan, settings))


def _macros(plan: Plan, settings: Settings) -> list[str]:
    return config_macros(plan.config, plan.layout, plan.state, settings.kv, plan.text)


def _device_tokenizer(device: DeviceTokenizer | None) -> dict[str, Any] | None:
    """What the device's tables take of flash, or why there are none. None: the checkpoint has no tokenizer."""
    if device is None:
        return None
    return {"bytes": len(device.tables)} if device.tables is not None else {"unsupported": device.reason}


def _manifest(
    model: Model,
    name: str,
    board: Board,
    settings: Settings,
    plan: Plan,
    written: Written,
    digest: bytes,
    device: DeviceTokenizer | None,
) -> dict[str, Any]:
    blocks = plan.layout.by_name
    return {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "source": {"sha256": model.source_sha256},
        "reading": reading_json(model),
        "settings": settings_json(plan, board, settings),
        "config_hash": digest.hex(),
        "device_tokenizer": _device_tokenizer(device),
        "image": {"bytes": plan.layout.image_bytes, "sha256": written.image_sha256},
        "plan": plan.to_json(),
        "generation": vars(model.generation),
        "bos_id": plan.config.bos_id,
        "eos_ids": list(plan.config.eos_ids),
        "vocab_size": plan.config.vocab_size,
        "tensors": [
            {
                "name": tensor,
                "format": str(blocks[tensor].matrix.format),
                "shape": [blocks[tensor].matrix.rows, blocks[tensor].matrix.cols],
                "offset": blocks[tensor].offset,
                "bytes": blocks[tensor].bytes,
                "sha256": sha256,
            }
            for tensor, sha256 in written.tensors.items()
        ],
    }


def reading_json(model: Model) -> dict[str, Any]:
    """What the user said against the checkpoint, as a manifest records it: of a family file its name alone."""
    family = model.reading.family
    return {
        "family": Path(family).name if family is not None and _has_family_file(model) else family,
        "set": dict(model.reading.overrides),
    }


def _has_family_file(model: Model) -> bool:
    return model.reading.family is not None and model.reading.family.endswith(".toml")


def settings_json(plan: Plan, board: Board, settings: Settings) -> dict[str, Any]:
    """The settings of a folder as its manifest records them, with every default spelt out."""
    return {
        "board": board.name,
        "quant": plan.quant,
        "kv": settings.kv,
        "max_seq": plan.config.max_seq,
        "max_source": plan.config.encoder.max_source if plan.config.encoder else None,
        "weights_address": plan.weights_address,
        "expert_align": settings.expert_align_bytes(board),
        "kernels": settings.kernel_set(board),
        "prefix": settings.prefix,
        "text_bytes": settings.text_bytes,
    }
