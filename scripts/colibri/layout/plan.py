# SPDX-License-Identifier: Apache-2.0
"""Fits or does not: every address and every byte, before anything is written.

A part is `exact` where the model determines it, or a `bound` where only the compiler knows (code, statics, stack). After
the link the ELF is measured: exact parts must be equal, bounds must hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from colibri.boards import Board, Region
from colibri.errors import DoesNotFit
from colibri.image.kernel_layouts import layout_of
from colibri.image.placement import ImageLayout, lay_out
from colibri.layout.budget import Budget, budget
from colibri.layout.kinds import ModelTables
from colibri.layout.per_token import (
    attention_macs,
    bytes_read_per_token,
    macs_per_token,
    operator_macs,
    source_macs_per_token,
)
from colibri.layout.settings import Settings
from colibri.layout.state_layout import StateLayout, state_layout
from colibri.layout.statics import app_array_bytes
from colibri.layout.text import TextUse, text_use
from colibri.layout.uses import depends_on_data, extra_axes
from colibri.model import ModelConfig
from colibri.text.device import DeviceTokenizer

APP, TEXT_APP = "generate", "text"
"""The application whose code, statics and stack the plan counts: the second where the image has the tokenizer."""


@dataclass(frozen=True)
class Part:
    """Bytes of one kind of content."""

    bytes: int
    kind: Literal["exact", "bound"]


@dataclass(frozen=True)
class RegionUse:
    """A region of the board and what the model and the engine take of it. Bytes."""

    name: str
    origin: int
    length: int
    used: int


@dataclass(frozen=True)
class Plan:
    """The answer of `colibri plan`. Sizes in bytes, counts per token."""

    board: str
    quant: str
    config: ModelConfig
    layout: ImageLayout
    state: StateLayout
    weights_address: int
    weights_region: str | None
    flash: dict[str, Part]
    ram: dict[str, Part]
    regions: tuple[RegionUse, ...]
    table_bytes: int
    macs_per_token: int
    weight_bytes_read_per_token: int
    source_macs_per_token: int
    text: TextUse | None

    @property
    def fits(self) -> bool:
        """Whether every region holds what is put there."""
        return not self.overflows()

    def overflows(self) -> list[RegionUse]:
        """The regions that are too small."""
        return [r for r in self.regions if r.used > r.length]

    def to_json(self) -> dict[str, Any]:
        """The document of `plan --json`, without schema_version."""
        return {
            "board": self.board,
            "quant": self.quant,
            "fits": self.fits,
            "flash": _parts_json(self.flash),
            "ram": _parts_json(self.ram),
            "regions": [vars(r) for r in self.regions],
            "weights_address": self.weights_address,
            "offset_table_bytes": self.table_bytes,
            "extra_axes": extra_axes(self.config),
            "app_array_bytes": app_array_bytes(self.config),
            "depends_on_data": depends_on_data(self.config),
            "macs_per_token": self.macs_per_token,
            "operator_macs": operator_macs(self.config, self.layout),
            "attention_macs": [list(one) for one in attention_macs(self.config)],
            "weight_bytes_read_per_token": self.weight_bytes_read_per_token,
            "source_macs_per_token": self.source_macs_per_token,
            "text": None if self.text is None else self.text.to_json(),
        }


def make_plan(config: ModelConfig, board: Board, settings: Settings, tokenizer: DeviceTokenizer | None = None) -> Plan:
    """Plan a model for a board.

    tokenizer  the checkpoint's; None: it has none

    Raises UsageError for an address the board does not have, and for a text on the device without a tokenizer that it can have;
    a misfit is in the result.
    """
    config = settings.apply(config)
    text = text_use(tokenizer, board.name, settings.text_bytes)
    in_image = text is not None and text.in_image
    policy = settings.policy.resolve(config)
    kernels = layout_of(settings.kernel_set(board))
    tokenizer_bytes = text.table_bytes if text is not None and text.in_image else None
    layout = lay_out(config, policy, settings.expert_align_bytes(board), kernels, tokenizer_bytes)
    state = state_layout(config, policy, settings.kv, kernels)
    app = TEXT_APP if in_image else APP
    bounds = budget(board.name, None, app)
    region, address = _weights_place(board, layout.image_bytes, settings.weights_address)
    flash = {name: Part(n, "exact") for name, n in layout.part_bytes().items()}
    table_bytes = ModelTables(config, layout, state.cache).bytes
    flash["code"] = Part(bounds.code_bytes_of(extra_axes(config)) + table_bytes, "bound")
    ram = _ram(config, state, board, bounds, app)
    if text is not None and text.in_image:
        ram["text"] = Part(text.array_bytes, "exact")
    return Plan(
        board=board.name,
        quant=str(policy),
        config=config,
        layout=layout,
        state=state,
        weights_address=address,
        weights_region=region.name if region else None,
        flash=flash,
        ram=ram,
        regions=_regions(board, region, address, layout, flash, ram),
        table_bytes=table_bytes,
        macs_per_token=macs_per_token(config, layout),
        weight_bytes_read_per_token=bytes_read_per_token(config, layout),
        source_macs_per_token=source_macs_per_token(config, layout),
        text=text,
    )


def require_fit(plan: Plan, board: Board, settings: Settings, tokenizer: DeviceTokenizer | None = None) -> None:
    """Raise DoesNotFit, by how much, and naming an option that would make it fit, where there is one."""
    over = plan.overflows()
    if not over:
        return
    worst = over[0]
    raise DoesNotFit(
        f"{board.name}: region {worst.name}",
        expected=f"at most {worst.length:,} bytes",
        got=f"{worst.used:,} bytes, {worst.used - worst.length:,} too many",
        hint=_remedy(plan.config, board, settings, tokenizer),
    )


def _remedy(config: ModelConfig, board: Board, settings: Settings, tokenizer: DeviceTokenizer | None) -> str:
    """The first change of options under which the model fits, tried one by one and then together."""
    shorter = [n for n in (4096, 2048, 1024, 512, 256, 128, 64) if n < config.max_seq]
    quants = ("q8", "q4")
    trials: list[dict[str, Any]] = [{}, *({"quant": q} for q in quants), {"kv": "f16"}, {"kv": "q8"}]
    trials += [{"max_seq": n} for n in shorter]
    trials += [{"quant": q, "kv": "q8", "max_seq": n} for q in quants for n in [None, *shorter]]
    places = {"": settings, "without --weights-addr": replace(settings, weights_address=None)}
    if settings.text_bytes is not None:
        places["without --text"] = replace(settings, text_bytes=None)
    for trial in trials:
        options = " ".join(_option(k, v) for k, v in trial.items() if v is not None)
        for dropped, place in places.items():
            if make_plan(config, board, place.changed(**trial), tokenizer).fits:
                return "it fits " + " and ".join(filter(None, [f"with {options}" if options else "", dropped]))
    return "no quantisation or context length makes it fit; choose a larger board (colibri boards)"


def _option(name: str, value: object) -> str:
    return {"quant": "-q", "kv": "--kv", "max_seq": "--max-seq"}[name] + f" {value}"


def _weights_place(board: Board, n_bytes: int, address: int | None) -> tuple[Region | None, int]:
    """The region and address of the image: the one asked for, else the first region that holds it."""
    if address is not None:
        return board.weights_region_at(address), address
    regions = [board.region(name) for name in board.weights_regions]
    if not regions:
        return None, 0
    region = next((r for r in regions if r.length_bytes >= n_bytes), regions[0])
    return region, region.origin


def _ram(config: ModelConfig, state: StateLayout, board: Board, bounds: Budget, app: str) -> dict[str, Part]:
    return {
        "kv_cache": Part(state.kv_bytes, "exact"),
        "activations": Part(state.activation_bytes, "exact"),
        "logits": Part(4 * config.vocab_size, "exact"),
        "statics": Part(bounds.static_bytes, "bound"),
        "stack": Part(stack_bytes(board, app), "bound"),
    }


def stack_bytes(board: Board, app: str = APP) -> int:
    """Stack the linker script reserves: the application's and the fault handler's. 0 where an operating system gives it."""
    return board.stack.get(app, 0) + board.stack.get("fault", 0)


def _regions(
    board: Board,
    weights: Region | None,
    address: int,
    layout: ImageLayout,
    flash: dict[str, Part],
    ram: dict[str, Part],
) -> tuple[RegionUse, ...]:
    uses = []
    for region in board.regions:
        used = 0
        if region == weights:
            used += address - region.origin + layout.image_bytes
        if region == board.code_region:
            used += flash["code"].bytes
        if region == board.ram_region:
            used += sum(part.bytes for part in ram.values())
        uses.append(RegionUse(region.name, region.origin, region.length_bytes, used))
    return tuple(uses)


def _parts_json(parts: dict[str, Part]) -> dict[str, Any]:
    return {
        "total": sum(p.bytes for p in parts.values()),
        "parts": {name: {"bytes": p.bytes, "kind": p.kind} for name, p in parts.items()},
    }
