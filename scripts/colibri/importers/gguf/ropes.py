# SPDX-License-Identifier: Apache-2.0
"""The rotary positions of a GGUF file: keys as the parameters of a config.json, tensors as divisors of the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from colibri.axes import Attention, LatentAttention, Layer, Rope
from colibri.errors import CheckpointError
from colibri.importers.gguf.facts import Facts
from colibri.importers.overrides import ROPE_FACTOR, YARN_TRUNCATE
from colibri.importers.rope import yarn_factor
from colibri.importers.stored import find
from colibri.importers.text import described
from colibri.model import F32Array, ModelConfig

_MAX = 2.0**50
_FREQUENCIES = "rope_freqs.weight"
_LONG, _SHORT = _LONGROPE = ("rope_factors_long.weight", "rope_factors_short.weight")


def rope_parameters(facts: Facts, *, truncate: bool, longrope: bool) -> dict[str, Any]:
    """Return rope_parameters as transformers 5 spells them; raises CheckpointError for a scaling that is not read.

    truncate  of yarn, which no key says
    longrope  whether two tables, for short and long texts, may be there
    """
    theta = facts.number("rope.freq_base", 1.0, _MAX, 10000.0)
    if facts.has("rope.freq_base_swa") and facts.number("rope.freq_base_swa", 1.0, _MAX) != theta:
        raise facts.error("rope.freq_base_swa", "the same as rope.freq_base")
    kind = facts.metadata.text(facts.key("rope.scaling.type")) if facts.has("rope.scaling.type") else "none"
    scale = facts.number("rope.scaling.factor", 2.0**-20, _MAX, 1.0)
    attention = facts.number("rope.scaling.attn_factor", 2.0**-20, _MAX, 1.0)
    for name in _LONGROPE:
        if name in facts.sources:
            if longrope:
                return _short_table(facts, theta)
            raise CheckpointError(
                facts.sources[name].where,
                expected="rope_freqs, one table for all lengths",
                got="two tables, for short and long texts",
                hint="import the model's safetensors instead",
            )
    if kind not in ("none", "linear", "yarn"):
        raise facts.error("rope.scaling.type", "none, linear or yarn")
    if kind != "yarn" and attention != 1.0:
        raise facts.error("rope.scaling.attn_factor", "1 without yarn")
    if kind == "none":
        return {"rope_type": "default", "rope_theta": theta}
    if kind == "linear":
        return {"rope_type": "linear", "rope_theta": theta, "factor": scale}
    parameters = {
        "rope_type": "yarn",
        "rope_theta": theta,
        "factor": scale,
        "original_max_position_embeddings": facts.integer("rope.scaling.original_context_length", 1, 2**31 - 1),
        "beta_fast": facts.number("rope.scaling.yarn_beta_fast", 2.0**-20, _MAX, 32.0),
        "beta_slow": facts.number("rope.scaling.yarn_beta_slow", 2.0**-20, _MAX, 1.0),
        "truncate": facts.choice(YARN_TRUNCATE, truncate, "whether yarn's two dimensions are rounded"),
    }
    if facts.has("rope.scaling.yarn_log_multiplier"):
        # The file has a tenth of mscale_all_dim; of mscale it has nothing, and in every published model they are equal.
        mscale = float(f"{10 * facts.number('rope.scaling.yarn_log_multiplier', 0.0, _MAX):.6g}")
        parameters |= {"mscale": mscale, "mscale_all_dim": mscale}
    if attention != 1.0:
        parameters["attention_factor"] = attention * yarn_factor(scale)
    return parameters


def _short_table(facts: Facts, theta: float) -> dict[str, Any]:
    """PhiMoE's: its converter computes a factor for sine and cosine, where the model has one of its own (short_mscale)."""
    facts.required(ROPE_FACTOR, "X", "short_mscale of the model's rope_scaling is not written")
    short = facts.sources.get(_SHORT)
    if short is None:
        raise facts.metadata.error(_SHORT, "a tensor, as there is the table for long texts", "none")
    return {
        "rope_type": "longrope",
        "rope_theta": theta,
        "short_factor": [float(f) for f in find(_SHORT, facts.sources, facts.metadata.where, short.shape).read(0, 1)],
        "original_max_position_embeddings": facts.integer("rope.scaling.original_context_length", 1, 2**31 - 1),
        "attention_factor": 1.0,
    }


def with_tensor_factors(config: ModelConfig, facts: Facts) -> ModelConfig:
    """Divide the frequencies by ``rope_freqs``, where the file has it: llama3's scaling, computed by the converter."""
    source = facts.sources.get(_FREQUENCIES)
    if source is None:
        return config

    def changed(layer: Layer) -> Layer:
        mixer = layer.mixer
        if not isinstance(mixer, Attention | LatentAttention) or mixer.rope is None:
            return layer
        return replace(layer, mixer=replace(mixer, rope=_divided(mixer.rope, facts)))

    done = {layer: changed(layer) for layer in dict.fromkeys(config.layers)}
    return replace(config, layers=tuple(done[layer] for layer in config.layers))


def _divided(rope: Rope, facts: Facts) -> Rope:
    values = find(_FREQUENCIES, facts.sources, facts.metadata.where, (len(rope.inv_freq),))
    factors: F32Array = values.read(0, 1)
    if not (np.isfinite(factors).all() and (factors >= 2.0**-20).all()):
        raise CheckpointError(
            values.where,
            expected="finite divisors of at least 2**-20",
            got=described(float(factors.min())),
            hint="the file is damaged; download it again",
        )
    divided = np.asarray(rope.inv_freq, dtype=np.float32) / factors
    return replace(rope, inv_freq=tuple(float(f) for f in divided.astype(np.float32)))
