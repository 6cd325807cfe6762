# SPDX-License-Identifier: Apache-2.0
"""The encoder-decoder oracles of tests/oracles, as golden models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.importers import load
from colibri.model import Model
from colibri.quantise import Policy, Stored, store
from colibri_sim.golden import GoldenModel

DATA = Path(__file__).parents[1] / "oracles" / "encoder_decoder"
NAMES = sorted(path.parent.name for path in DATA.glob("*/golden.npz"))


@dataclass(frozen=True)
class Oracle:
    """One checkpoint; answers as tests/oracles/README.md lists them."""

    model: Model
    answers: dict[str, npt.NDArray[Any]]

    @property
    def source(self) -> list[int]:
        return [int(i) for i in self.answers["source"]]

    @property
    def ids(self) -> list[int]:
        return [int(i) for i in self.answers["ids"]]

    def golden(self, quant: str = "f32", *, kind: type[GoldenModel] = GoldenModel, **options: Any) -> GoldenModel:
        config = options.pop("config", self.model.config)
        policy = Policy.parse(quant).resolve(config)

        @cache
        def stored(name: str) -> Stored:
            return store(self.model.tensors[name], policy.format_of(name))

        return kind(config, stored, **options)


@cache
def oracle(name: str) -> Oracle:
    return Oracle(load(DATA / name), dict(np.load(DATA / name / "golden.npz")))
