# SPDX-License-Identifier: Apache-2.0
"""What a model family is to the importers: a name, defaults, and two functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from colibri.importers.bind import Binding, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.strict_json import Json
from colibri.model import ModelConfig


@dataclass(frozen=True)
class Family:
    """One model family.

    name           its model_type in config.json
    title          as people call it
    architectures  classes whose weights are the whole language model
    defaults       what its configuration class takes for keys that the file does not have
    config         config.json to axes; raises CheckpointError for what the axes cannot say
    bindings       axes, the names in the checkpoint and config.json to where each canonical tensor is; lazy
    adapt          axes as the names of the tensors, too, say them
    nested         type of a larger model that holds this one, and the key of this one's config there
    """

    name: str
    title: str
    architectures: tuple[str, ...]
    defaults: Mapping[str, Json]
    config: Callable[[ConfigReader], ModelConfig]
    bindings: Callable[[ModelConfig, Sources, ConfigReader], Iterator[Binding]]
    adapt: Callable[[ModelConfig, Sources], ModelConfig] = lambda config, _: config
    nested: tuple[str, str] | None = None
