# SPDX-License-Identifier: Apache-2.0
"""The RoPE keys of a Hugging Face config.json, in the spellings of transformers 4 and 5.

    4:  rope_theta, rope_scaling: null | {type | rope_type, factor, ...}, partial_rotary_factor
    5:  rope_parameters: {rope_type, rope_theta, factor, partial_rotary_factor, ...}
        rope_parameters: {full_attention: {...}, sliding_attention: {...}}

Both may be there, as tools that write for either do; then they must agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from colibri.axes import Rope
from colibri.importers import rope
from colibri.importers.config import ConfigReader
from colibri.importers.text import described
from colibri.model import F32Array

Pairing = Literal["half", "adjacent"]

_TYPES = ("default", "linear", "llama3", "yarn", "longrope")
_REFUSED_TYPES = {
    "dynamic": "its table changes with the length of the sequence",
    "proportional": "Colibri does not implement it",
}
_MAX = 2.0**50  # of theta, factors; keeps every step finite in float32
_MIN = 2.0**-20
_SETS = ("rope_parameters", "rope_scaling")
_ORIGINAL = "original_max_position_embeddings"
_MAX_POSITION = "max_position_embeddings"


@dataclass(frozen=True)
class RopeConfig:
    """What the keys say.

    rope       the table, and what multiplies sine and cosine
    max_seq    positions past it would need another table; None: no such limit
    qk_factor  multiplies the attention's scale (DeepSeek's mscale_all_dim, squared)
    """

    rope: Rope
    max_seq: int | None = None
    qk_factor: float = 1.0


@dataclass(frozen=True)
class _Keys:
    """The places that may hold a RoPE key, the sets for one kind of layer first."""

    config: ConfigReader
    sets: tuple[ConfigReader, ...]

    def holder(self, key: str) -> ConfigReader:
        """Return the reader that holds `key`; the file itself, whose table has the default, where nobody says it."""
        said = [reader for reader in (*self.sets, self.config) if reader.has(key)]
        for other in said[1:]:
            if other.get(key) != said[0].get(key):
                raise other.error(key, f"{described(said[0].get(key))} as {said[0].inside}{key} says")
        return said[0] if said else self.config

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        holder = self.holder(key)
        if default is not None and not holder.has(key):
            return default
        return holder.number(key, low, high)

    def original(self) -> int:
        """Return the context length of training; a key of the file itself wins over the set's, as in transformers."""
        holder = self.config if self.config.has(_ORIGINAL) else self.holder(_ORIGINAL)
        if not holder.has(_ORIGINAL):
            return self.config.integer(_MAX_POSITION, 1, 2**31 - 1)
        return holder.integer(_ORIGINAL, 1, 2**31 - 1)

    def factor(self) -> float:
        """Return the stretch of positions; without one, the context length over that of training."""
        holder = self.holder("factor")
        if holder.has("factor"):
            return holder.number("factor", _MIN, _MAX)
        if self.config.has(_ORIGINAL) or self.holder(_ORIGINAL).has(_ORIGINAL):
            return self.config.integer(_MAX_POSITION, 1, 2**31 - 1) / self.original()
        return holder.number("factor", _MIN, _MAX)


def read_rope(
    config: ConfigReader,
    head_dim: int,
    pairing: Pairing = "half",
    *,
    partial: bool = False,
    kind: str | None = None,
) -> RopeConfig:
    """Return the rotary embedding that a config's keys mean; raises CheckpointError naming a key.

    head_dim  dimensions of a head
    partial   the family can rotate a part of them, partial_rotary_factor
    kind      the kind of layer (full_attention, ...), where each may have parameters of its own
    """
    keys = _Keys(config, tuple(_sets(config, kind)))
    theta = keys.number("rope_theta", 1.0, _MAX)
    n_dims = _rotary_dims(keys, head_dim, partial=partial)
    scaling = _rope_type(keys)
    table, factor, max_seq, qk_factor = rope.inverse_frequencies(theta, n_dims), 1.0, None, 1.0
    if scaling == "linear":
        table = rope.scale_linear(table, keys.number("factor", _MIN, _MAX))
    elif scaling == "llama3":
        table = rope.scale_llama3(table, _llama3(keys))
    elif scaling == "yarn":
        table, factor, qk_factor = _yarn(keys, theta, n_dims)
    elif scaling == "longrope":
        table, factor, max_seq = _longrope(keys, theta, n_dims)
    values = tuple(float(f) for f in table)
    return RopeConfig(Rope(pairing, values, float(np.float32(factor))), max_seq, qk_factor)


def _sets(config: ConfigReader, kind: str | None) -> list[ConfigReader]:
    sets = []
    # The class's own parameters count only where the file has none.
    for name in [name for name in _SETS if config.has(name)] or _SETS:
        given = config.within(name)
        if given is not None and any(isinstance(v, dict) for v in given.values.values()):
            if kind is None:
                raise config.error(name, "one set of RoPE parameters for all layers", "one for each kind of layer")
            given = given.within(kind)
        if given is not None:
            sets.append(given)
    return sets


def _rotary_dims(keys: _Keys, head_dim: int, *, partial: bool) -> int:
    holder = keys.holder("partial_rotary_factor")
    part = 1.0
    if holder.get("partial_rotary_factor") is not None:
        part = holder.number("partial_rotary_factor", 0.0, 1.0)
    if part != 1.0 and not partial:
        raise holder.error("partial_rotary_factor", "1: every dimension of a head rotated")
    n_dims = int(head_dim * part)
    if n_dims < 2 or n_dims % 2:
        raise holder.error(
            "partial_rotary_factor", f"an even number of the {head_dim} dimensions of a head", f"{part:g}"
        )
    return n_dims


def _rope_type(keys: _Keys) -> str:
    found: list[tuple[ConfigReader, str]] = []
    for given in keys.sets:
        # Older files say "type"; the newer class keeps it beside "rope_type" when it rewrites them.
        found += [(given, key) for key in ("rope_type", "type") if given.has(key)]
    kinds = [given.text(key) for given, key in found]
    if not kinds:
        return "default"
    given, key = found[0]
    for kind in kinds[1:]:
        if kind != kinds[0]:
            raise given.error(key, f"the same type in each place, {described(kinds[0])}", described(kind))
    if kinds[0] not in _TYPES:
        reason = _REFUSED_TYPES.get(kinds[0], "it is unknown")
        raise given.error(
            key,
            f"one of {', '.join(_TYPES)}",
            f"{described(kinds[0])}: {reason}",
            "use a checkpoint whose positions are not scaled this way",
        )
    return kinds[0]


def _llama3(keys: _Keys) -> rope.Llama3Scaling:
    low = keys.number("low_freq_factor", _MIN, _MAX)
    holder = keys.holder("high_freq_factor")
    high = holder.number("high_freq_factor", _MIN, _MAX)
    if high <= low:
        raise holder.error("high_freq_factor", f"more than low_freq_factor, {low:g}")
    return rope.Llama3Scaling(keys.number("factor", _MIN, _MAX), low, high, keys.original())


def _yarn(keys: _Keys, theta: float, n_dims: int) -> tuple[F32Array, float, float]:
    truncate = keys.holder("truncate")
    scaling = rope.YarnScaling(
        factor=keys.factor(),
        original_max_positions=keys.original(),
        beta_fast=keys.number("beta_fast", _MIN, _MAX, 32.0),
        beta_slow=keys.number("beta_slow", _MIN, _MAX, 1.0),
        truncate=truncate.flag("truncate") if truncate.has("truncate") else True,
    )
    if theta == 1.0:
        raise keys.holder("rope_theta").error("rope_theta", "more than 1, as yarn divides by its logarithm")
    mscale, mscale_all = (keys.number(key, 0.0, _MAX, 0.0) for key in ("mscale", "mscale_all_dim"))
    if keys.holder("attention_factor").has("attention_factor"):
        factor = keys.number("attention_factor", _MIN, _MAX)
    elif mscale and mscale_all:
        factor = rope.yarn_factor(scaling.factor, mscale) / rope.yarn_factor(scaling.factor, mscale_all)
    else:
        factor = rope.yarn_factor(scaling.factor)
    qk_factor = rope.yarn_factor(scaling.factor, mscale_all) ** 2 if mscale_all else 1.0
    return rope.scale_yarn(theta, n_dims, scaling), factor, qk_factor


def _longrope(keys: _Keys, theta: float, n_dims: int) -> tuple[F32Array, float, int]:
    """The table of short sequences: it holds up to the context length of training, and so does the model."""
    original, holder = keys.original(), keys.holder("short_factor")
    listed = holder.get("short_factor")
    factors = listed if isinstance(listed, list) else []
    numbers = [
        float(f) for f in factors if isinstance(f, int | float) and not isinstance(f, bool) and _MIN <= f <= _MAX
    ]
    if len(numbers) != len(factors) or len(numbers) != n_dims // 2:
        raise holder.error("short_factor", f"{n_dims // 2} positive numbers")
    if keys.holder("short_mscale").has("short_mscale"):  # Phi's own
        factor = keys.number("short_mscale", _MIN, _MAX)
    elif keys.holder("attention_factor").has("attention_factor"):
        factor = keys.number("attention_factor", _MIN, _MAX)
    else:
        stretch = keys.factor()
        factor = 1.0 if stretch <= 1 or original < 2 else math.sqrt(1 + math.log(stretch) / math.log(original))
    return rope.scale_each(theta, n_dims, numbers), factor, original


@dataclass(frozen=True)
class Truncate:
    """Where a config's yarn parameters are, and their key truncate (true where it is absent)."""

    name: str
    value: bool

    def changed(self, config: ConfigReader, *, value: bool) -> ConfigReader:
        """Return the config with another value."""
        parameters = config.get(self.name)
        assert isinstance(parameters, dict)
        return config.with_value(self.name, {**parameters, "truncate": value})


def yarn_truncate(config: ConfigReader) -> Truncate | None:
    """Return yarn's truncate; None where positions are not scaled that way. Raises CheckpointError as read_rope does."""
    for name in [name for name in _SETS if config.has(name)] or _SETS:
        given = config.within(name)
        if given is not None and "yarn" in (given.get("rope_type"), given.get("type")):
            return Truncate(name, given.flag("truncate") if given.has("truncate") else True)
    return None
