# SPDX-License-Identifier: Apache-2.0
"""The golden model as an object: a model with its sequence of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from colibri.axes import Attention
from colibri.combinations import contradictions
from colibri.model import ModelConfig
from colibri.quantise import Stored

from .cache import KvFormat
from .checks import RangeExceeded
from .fma import F32Array
from .operators import Call, I32Array
from .trace import TraceSink
from .walk import Walk


@dataclass(frozen=True)
class Result:
    """What one forward call gives for its T tokens.

    logits   float32 [T, vocab]; [1, vocab] (the last token) where only those were asked for
    experts  for each layer of encoder or decoder int32 [T, top_k], in the order of selection, -1 where none is chosen;
             [T, 0] for a dense layer
    """

    logits: F32Array
    experts: list[I32Array]


class GoldenModel(Walk):
    """The definition of every bit of the forward step: forward appends to the sequence, rewind takes back.

    config   ModelConfig
    weights  gives the stored tensor of a name; asked once for each
    kv       format of the KV cache

    A batch has the bits of one token at a time. Every inherited method is one operator of docs/NUMERICS.md section 7.
    Raises ValueError for a configuration that the contract gives no arithmetic for.
    """

    def __init__(self, config: ModelConfig, weights: Callable[[str], Stored], kv: KvFormat = "f32") -> None:
        for problem in contradictions(config):
            raise ValueError(problem)
        super().__init__(config, weights, kv)
        self._position = 0
        self._usable = True

    @property
    def position(self) -> int:
        """Tokens in the sequence so far."""
        return self._position

    def rewind(self, position: int) -> None:
        """Forget the tokens at `position` and after. To 0 it also makes a model usable again that RangeExceeded ended.

        A source stays. Raises ValueError outside 0 .. the present position, or on an unusable model.
        """
        if not 0 <= position <= self._position or (position and not self._usable):
            raise ValueError(f"cannot rewind from position {self._position} to {position}")
        self._position = position
        self._usable = True

    def encode(self, ids: Sequence[int], *, trace: TraceSink | None = None) -> list[I32Array]:
        """Run the encoder over a source and begin an empty sequence behind it; the experts of its layers.

        Raises ValueError, with nothing changed, without an encoder, for no ids, an id outside the vocabulary or more
        than max_source. Raises RangeExceeded as `forward`; there is then no source.
        """
        encoder = self.config.encoder
        if encoder is None:
            raise ValueError("the model has no encoder")
        self._check_ids(ids)
        if len(ids) > encoder.max_source:
            raise ValueError(f"{len(ids)} tokens exceed the longest source, {encoder.max_source}")
        self._position, self.source_length, self._usable = 0, 0, True
        call = Call(np.arange(len(ids)), trace)
        x = self.embed(call, np.asarray(ids, dtype=np.int64))
        for call.layer in range(encoder.n_layers):
            x = self.layer(call, self.config.layers[call.layer], x)
        call.layer = None
        n = self.encoder_norm(call, encoder.final_norm, x)
        for call.layer in range(encoder.n_layers, len(self.config.layers)):
            mixer = self.config.layers[call.layer].mixer
            if isinstance(mixer, Attention) and mixer.over == "encoded":
                self.cross_keys(call, mixer, n)
        self.source_length = len(ids)
        return call.experts

    def _check_ids(self, ids: Sequence[int]) -> None:
        if not ids or min(ids) < 0 or max(ids) >= self.config.vocab_size:
            raise ValueError(f"ids: at least one, each in 0..{self.config.vocab_size - 1}")

    def forward(self, ids: Sequence[int], *, trace: TraceSink | None = None, last_only: bool = False) -> Result:
        """Append ids to the sequence and compute their logits; with last_only those of the last token alone.

        Raises ValueError, with nothing changed, for no ids, an id outside the vocabulary, more than max_seq tokens
        in all, or an encoder without a source. Raises RangeExceeded where the engine returns COLIBRI_ERR_RANGE, for the first
        position that does;
        after it the model must be rewound to 0.
        """
        if not self._usable:
            raise ValueError("the sequence ended with RangeExceeded; rewind(0) first")
        self._check_ids(ids)
        if self.config.encoder is not None and self.source_length == 0:
            raise ValueError("encode a source first")
        if self._position + len(ids) > self.config.max_seq:
            raise ValueError(f"{self._position} + {len(ids)} tokens exceed the context of {self.config.max_seq}")
        try:
            result = self._run(ids, trace, last_only)
        except RangeExceeded as error:
            self._usable = False
            before = error.position - self._position
            if before > 0:
                # A token before the one found may fail in a later layer: the engine would have met that first.
                self._run(ids[:before], trace, last_only, head=not last_only)
            raise
        self._position += len(ids)
        return result

    def _run(self, ids: Sequence[int], trace: TraceSink | None, last_only: bool, *, head: bool = True) -> Result:
        call = Call(self._position + np.arange(len(ids)), trace)
        x = self.embed(call, np.asarray(ids, dtype=np.int64))
        for call.layer in range(self.config.n_encoder, len(self.config.layers)):
            x = self.layer(call, self.config.layers[call.layer], x)
        call.layer = None
        if not head:
            return Result(np.zeros((0, self.config.vocab_size), dtype=np.float32), call.experts)
        if last_only:
            call.positions, x = call.positions[-1:], x[-1:]
        return Result(self.head(call, self.final_norm(call, x)), call.experts)
