# SPDX-License-Identifier: Apache-2.0
"""What the golden model says when a checkpoint is packed: vectors.json about a set of prompts, and the self-test's vector.

It is computed from the checkpoint, never from the image: a tensor that the packer puts in the wrong place must show as
a difference, not as the same mistake on both sides.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from colibri.model import F32Array, Model, ModelConfig
from colibri.quantise import Policy, Stored, store
from colibri_sim.golden.cache import KvFormat
from colibri_sim.golden.checks import RangeExceeded
from colibri_sim.golden.model import GoldenModel
from colibri_sim.golden.sampler import Pcg32
from colibri_sim.golden.trace import SourceRecorder, TraceName, TraceRecorder, Values, source_trace_names

SCHEMA_VERSION = 1
IN_SOURCE = -1
"""`range_at` of a prompt whose source leaves the range."""
_SELFTEST_SEED = 20260101


@dataclass(frozen=True)
class Prompt:
    """Token ids, and the text they came from where there was one.

    source  what an encoder reads; None: the model has none. `text` is then the source's
    """

    ids: tuple[int, ...]
    text: str | None = None
    source: tuple[int, ...] | None = None


def golden_model(model: Model, config: ModelConfig, policy: Policy, kv: KvFormat) -> GoldenModel:
    """The golden model of a checkpoint under a policy; tensors are read and quantised when first used.

    config  the model's own, or with a shorter context
    """

    @cache
    def stored(name: str) -> Stored:
        return store(model.tensors[name], policy.format_of(name))

    return GoldenModel(config, stored, kv)


def make_vectors(golden: GoldenModel, prompts: Sequence[Prompt], *, quant: str, kv: str) -> dict[str, Any]:
    """Per prompt and position: logits as little-endian hex, experts, and the CRC-32 of every trace tensor."""
    recorder_names = TraceRecorder(golden.config).names
    return {
        "schema_version": SCHEMA_VERSION,
        "quant": quant,
        "kv": kv,
        "trace": [list(name) for name in recorder_names],
        **(
            {"source_trace": [list(name) for name in source_trace_names(golden.config)]}
            if golden.config.encoder
            else {}
        ),
        "prompts": [_one(golden, prompt) for prompt in prompts],
    }


def _one(golden: GoldenModel, prompt: Prompt) -> dict[str, Any]:
    golden.rewind(0)
    recorder = TraceRecorder(golden.config)
    entry: dict[str, Any] = {"text": prompt.text, "ids": list(prompt.ids), "range_at": None}
    try:
        if prompt.source is not None:
            entry |= _encode(golden, prompt.source)
    except RangeExceeded:
        entry |= {"source": list(prompt.source or ()), "source_crc32": [], "source_experts": []}
        return {**entry, "range_at": IN_SOURCE, "logits": [], "experts": [], "trace_crc32": []}
    try:
        result = golden.forward(list(prompt.ids), trace=recorder)
    except RangeExceeded as error:
        return {**entry, "range_at": error.position, "logits": [], "experts": [], "trace_crc32": []}
    n = len(prompt.ids)
    return {
        **entry,
        "logits": [to_hex(result.logits[p]) for p in range(n)],
        "experts": [[layer[p].tolist() for layer in result.experts] for p in range(n)],
        "trace_crc32": [recorder.crcs(p) for p in range(n)],
    }


def _encode(golden: GoldenModel, source: Sequence[int]) -> dict[str, Any]:
    """What the encoder says: experts by token, and of every tensor one CRC-32 of all tokens."""
    recorder = SourceRecorder(golden.config)
    experts = golden.encode(list(source), trace=recorder)
    by_token = [[layer[t].tolist() for layer in experts] for t in range(len(source))]
    return {"source": list(source), "source_crc32": recorder.crcs, "source_experts": by_token}


def make_selftest(golden: GoldenModel, n_positions: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ids drawn from the vocabulary, and the CRC-32 of the logits at each. An encoder's source: the first id and those after it.

    Fewer than n_positions where the context is shorter, or a value leaves the range: there the engine has no logits either.
    """
    golden.rewind(0)
    draw, vocab_size = Pcg32(_SELFTEST_SEED), golden.config.vocab_size
    ids: list[int] = []
    crcs: list[int] = []
    for _ in range(min(n_positions, golden.config.max_seq)):
        drawn = draw.next() * vocab_size >> 32
        try:
            if golden.config.encoder is not None and not ids:
                n_source = min(n_positions, golden.config.encoder.max_source)
                golden.encode([(drawn + i) % vocab_size for i in range(n_source)])
            logits = golden.forward([drawn]).logits[-1]
        except RangeExceeded:
            break
        ids.append(drawn)
        crcs.append(zlib.crc32(logits.astype("<f4").tobytes()))
    return tuple(ids), tuple(crcs)


def source_tensors(golden: GoldenModel, source: Sequence[int]) -> dict[TraceName, list[Values]]:
    """Every tensor of the encoder, token by token."""
    recorder = SourceRecorder(golden.config, keep=True)
    golden.encode(list(source), trace=recorder)
    return recorder.values


def tensors_at(
    golden: GoldenModel, ids: Sequence[int], position: int, source: Sequence[int] | None = None
) -> dict[TraceName, Values]:
    """Every trace tensor at one position of a prompt."""
    golden.rewind(0)
    if source is not None:
        golden.encode(list(source))
    recorder = TraceRecorder(golden.config, keep={position})
    golden.forward(list(ids[: position + 1]), trace=recorder)
    return recorder.values(position)


def to_hex(values: F32Array) -> str:
    """float32 as little-endian hex, eight digits an element."""
    return values.astype("<f4").tobytes().hex()


def from_hex(text: str) -> F32Array:
    """The inverse of `to_hex`."""
    return np.frombuffer(bytes.fromhex(text), dtype="<f4").astype(np.float32)
