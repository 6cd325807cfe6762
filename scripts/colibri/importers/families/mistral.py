# SPDX-License-Identifier: Apache-2.0
"""Mistral: Llama with a sliding window."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from colibri.axes import Ffn
from colibri.importers.bind import Copy, Part
from colibri.importers.config import ConfigReader
from colibri.importers.families.blocks import bind_dense
from colibri.importers.families.decoder import COMMON_DEFAULTS, bind_decoder, read_decoder, read_width, read_window
from colibri.importers.families.family import Family
from colibri.model import ModelConfig


def _config(config: ConfigReader) -> ModelConfig:
    return read_decoder(config, "mistral", Ffn(width=read_width(config)), window=read_window(config))


def _bindings(config: ModelConfig, names: Collection[str]) -> Iterator[Part | Copy]:
    return bind_decoder(config, names, bind_dense)


FAMILY = Family(
    name="mistral",
    architectures=("MistralForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
        "max_position_embeddings": 4096 * 32,
        "rms_norm_eps": 1e-6,
        "sliding_window": 4096,
    },
    config=_config,
    bindings=_bindings,
)
