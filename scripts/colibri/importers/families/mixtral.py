# SPDX-License-Identifier: Apache-2.0
"""Mixtral: every feed-forward is a mixture of experts; softmax over the chosen ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from colibri.axes import Ffn, Router
from colibri.importers.bind import Copy, Part
from colibri.importers.config import ConfigReader
from colibri.importers.families.blocks import bind_experts
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    MAX_ROW_ELEMS,
    bind_decoder,
    read_decoder,
    read_width,
    read_window,
)
from colibri.importers.families.family import Family
from colibri.model import ModelConfig

_MODULES = ("block_sparse_moe", "mlp")  # as published, and as transformers 5 calls it in memory


def _config(config: ConfigReader) -> ModelConfig:
    count = "num_local_experts"
    if config.has("num_experts"):  # the framework's alias
        if config.has(count) and config.get(count) != config.get("num_experts"):
            raise config.error("num_experts", f"the same as {count}")
        count = "num_experts"
    n_experts = config.integer(count, 1, MAX_ROW_ELEMS)
    router = Router(n_experts, config.integer("num_experts_per_tok", 1, n_experts))
    return read_decoder(config, "mixtral", Ffn(read_width(config), router=router), window=read_window(config))


def _ffn(config: ModelConfig, n: int, names: Collection[str]) -> Iterator[Part]:
    router = config.layers[n].ffn.router
    assert router is not None
    module = _MODULES[f"model.layers.{n}.mlp.gate.weight" in names]
    shape = (router.n_experts, config.hidden_size)
    yield Part(f"layers.{n}.router.weight", f"model.layers.{n}.{module}.gate.weight", shape)
    yield from bind_experts(config, n, module, names)


def _bindings(config: ModelConfig, names: Collection[str]) -> Iterator[Part | Copy]:
    return bind_decoder(config, names, _ffn)


FAMILY = Family(
    name="mixtral",
    architectures=("MixtralForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
        "max_position_embeddings": 4096 * 32,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
    config=_config,
    bindings=_bindings,
)
