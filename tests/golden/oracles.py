# SPDX-License-Identifier: Apache-2.0
"""The tiny checkpoints of tests/oracles with the reference framework's answers, as golden models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colibri.importers import load
from colibri.model import Model, ModelConfig
from colibri.quantise import Policy, Stored, store
from colibri_sim.golden import GoldenModel

DATA = Path(__file__).parents[1] / "oracles" / "data"
NAMES = sorted(path.parent.name for path in DATA.glob("*/golden.npz"))
TOLERANCE = 2e-5
"""Of the largest |logit|: NUMERICS section 11."""

Weights = Callable[[str], Stored]


@dataclass(frozen=True)
class Oracle:
    """One checkpoint; answers as tests/oracles/README.md lists them, for the tokens at `positions`."""

    name: str
    model: Model
    ids: list[int]
    positions: npt.NDArray[np.int32]
    logits: npt.NDArray[np.float32]
    experts: npt.NDArray[np.int16] | None
    router_weights: npt.NDArray[np.float32] | None

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    def golden(self, quant: str = "f32", *, kind: type[GoldenModel] = GoldenModel, **options: Any) -> GoldenModel:
        return kind(options.pop("config", self.config), weights(self.name, quant), **options)


@cache
def oracle(name: str) -> Oracle:
    answers = np.load(DATA / name / "golden.npz")
    return Oracle(
        name,
        load(DATA / name),
        answers["ids"].tolist(),
        answers["positions"],
        answers["logits"],
        answers.get("experts"),
        answers.get("router_weights"),
    )


@cache
def weights(name: str, quant: str) -> Weights:
    model, policy = oracle(name).model, Policy.parse(quant).resolve(oracle(name).config)
    return cache(lambda tensor: store(model.tensors[tensor], policy.format_of(tensor)))


def relative(actual: npt.NDArray[Any], expected: npt.NDArray[Any]) -> float:
    """Largest difference, as a fraction of the largest expected magnitude."""
    return float(np.abs(actual.astype(np.float64) - expected).max() / np.abs(expected).max())
