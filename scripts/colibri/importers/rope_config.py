# SPDX-License-Identifier: Apache-2.0
"""The RoPE keys of a Hugging Face config.json, in the spellings of transformers 4 and 5.

    4:  rope_theta, rope_scaling: null | {type | rope_type, factor, ...}
    5:  rope_parameters: {rope_type, rope_theta, factor, ...}

Both may be there, as tools that write for either do; then they must agree.
"""

from __future__ import annotations

from colibri.importers import rope
from colibri.importers.config import ConfigReader
from colibri.importers.text import described
from colibri.model import F32Array

_TYPES = ("default", "linear", "llama3")
_REFUSED_TYPES = {
    "dynamic": "its table changes with the length of the sequence",
    "yarn": "Colibri does not implement it",
    "longrope": "it has one table for short and one for long sequences",
    "proportional": "Colibri does not implement it",
}
_MAX = 2.0**50  # of theta, factors; keeps every step finite in float32
_SETS = ("rope_parameters", "rope_scaling")


def inverse_frequencies(config: ConfigReader, head_dim: int) -> F32Array:
    """Return the float32 table [head_dim / 2] that a config's keys mean; raises CheckpointError naming a key."""
    for name in _SETS:
        given = config.within(name)
        if given is not None and any(isinstance(v, dict) for v in given.values.values()):
            raise config.error(name, "one set of RoPE parameters for all layers", "one for each kind of layer")
    theta = _agreed(config, "rope_theta").number("rope_theta", 1.0, _MAX)
    partial = _agreed(config, "partial_rotary_factor")
    if partial.has("partial_rotary_factor") and partial.number("partial_rotary_factor", 0.0, 1.0) != 1.0:
        raise partial.error("partial_rotary_factor", "1: every dimension of a head rotated")
    table = rope.inverse_frequencies(theta, head_dim)
    kind = _rope_type(config)
    if kind == "linear":
        return rope.scale_linear(table, _factor(config))
    if kind == "llama3":
        return rope.scale_llama3(table, _llama3(config))
    return table


def _rope_type(config: ConfigReader) -> str:
    found: list[tuple[ConfigReader, str]] = []
    for name in _SETS:
        given = config.within(name)
        # Older files say "type"; the newer class keeps it beside "rope_type" when it rewrites them.
        found += [(given, key) for key in ("rope_type", "type") if given is not None and given.has(key)]
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


def _agreed(config: ConfigReader, key: str) -> ConfigReader:
    """Return the reader that holds `key`: a set of RoPE parameters, or the file itself, whose table has the default."""
    holders = [given for name in _SETS if (given := config.within(name)) is not None] + [config]
    said = [holder for holder in holders if holder.has(key)]
    for other in said[1:]:
        if other.get(key) != said[0].get(key):
            raise other.error(key, f"{described(said[0].get(key))} as {said[0].inside}{key} says")
    return said[0] if said else config


def _factor(config: ConfigReader) -> float:
    return _agreed(config, "factor").number("factor", 2.0**-20, _MAX)


def _llama3(config: ConfigReader) -> rope.Llama3Scaling:
    low = _agreed(config, "low_freq_factor").number("low_freq_factor", 2.0**-20, _MAX)
    holder = _agreed(config, "high_freq_factor")
    high = holder.number("high_freq_factor", 2.0**-20, _MAX)
    if high <= low:
        raise holder.error("high_freq_factor", f"more than low_freq_factor, {low:g}")
    # A key of the file itself wins over the set's, as in transformers; without either it is the context length.
    key = "original_max_position_embeddings"
    holder = config if config.has(key) else _agreed(config, key)
    if not holder.has(key):
        holder, key = config, "max_position_embeddings"
    return rope.Llama3Scaling(_factor(config), low, high, holder.integer(key, 1, 2**31 - 1))
