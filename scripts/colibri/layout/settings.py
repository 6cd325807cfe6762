# SPDX-License-Identifier: Apache-2.0
"""What the user chose for one packed folder, apart from the checkpoint and the board."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from colibri.boards import Board
from colibri.errors import UsageError
from colibri.layout.cache_layout import Kv
from colibri.model import Encoder, ModelConfig
from colibri.quantise import Policy

MAX_SEQ_LIMIT = 1 << 20
"""sincos is defined below 2**20 (docs/NUMERICS.md 6), and inv_freq is at most 1."""

ExpertAlign = Literal["line", "sector"] | int


@dataclass(frozen=True)
class Settings:
    """Options of `pack`. max_seq, max_source and weights_address None: the checkpoint's, the board's.

    expert_align  line: the board's cache line; sector: its erase sector; or bytes, a multiple of 16
    kernels       the kernel set; None: the board's
    prefix        symbol prefix of the model's C interface
    text_bytes    the image has the tokenizer, for prompts of up to so many bytes; None: it has none
    """

    policy: Policy = field(default_factory=lambda: Policy.parse("q8"))
    kv: Kv = "f32"
    max_seq: int | None = None
    max_source: int | None = None
    weights_address: int | None = None
    expert_align: ExpertAlign = "line"
    kernels: str | None = None
    prefix: str | None = None
    text_bytes: int | None = None

    def apply(self, config: ModelConfig) -> ModelConfig:
        """The configuration with the chosen lengths. Raises UsageError beyond the checkpoint's."""
        wanted = config.max_seq if self.max_seq is None else self.max_seq
        limit = min(config.max_seq, MAX_SEQ_LIMIT)
        if not 1 <= wanted <= limit:
            what = (
                "the context the checkpoint was made for"
                if limit < MAX_SEQ_LIMIT
                else "the range of the rotary functions"
            )
            raise UsageError(
                "--max-seq",
                expected=f"1 to {limit}, {what}",
                got=str(wanted),
                hint=f"choose a shorter context: --max-seq {limit}",
            )
        return replace(config, max_seq=wanted, encoder=self._encoder(config.encoder))

    def _encoder(self, encoder: Encoder | None) -> Encoder | None:
        if self.max_source is None:
            return encoder
        if encoder is None or not 1 <= self.max_source <= encoder.max_source:
            raise UsageError(
                "--max-source",
                expected=f"1 to {encoder.max_source}" if encoder else "a model with an encoder",
                got=str(self.max_source) if encoder else "one without",
                hint="choose a shorter source" if encoder else "leave it out",
            )
        return replace(encoder, max_source=self.max_source)

    def expert_align_bytes(self, board: Board) -> int:
        """Bytes of whose multiples each expert starts."""
        if self.expert_align == "line":
            return max(board.alignment.cache_line_bytes, 16)
        if self.expert_align == "sector":
            return board.alignment.erase_sector_bytes
        return self.expert_align

    def kernel_set(self, board: Board) -> str:
        """The kernel set that the image is laid out for. Raises UsageError for one that the board's core does not run."""
        return board.kernels if self.kernels is None else board.checked_kernels(self.kernels)

    def changed(self, *, quant: str | None = None, kv: Kv | None = None, max_seq: int | None = None) -> Settings:
        """The settings with some options replaced."""
        changes: dict[str, Any] = {"policy": Policy.parse(quant) if quant else None, "kv": kv, "max_seq": max_seq}
        return replace(self, **{name: value for name, value in changes.items() if value is not None})
