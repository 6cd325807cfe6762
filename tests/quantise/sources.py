# SPDX-License-Identifier: Apache-2.0
"""Matrices that tell a right quantisation from a wrong one, as tensors an importer could have read."""

from __future__ import annotations

import numpy as np

from colibri.model import F32Array, Tensor

EDGES = (0.0, -0.0, 2.0**-40, -(2.0**-40), 2.0**-41, 1e-40, -1e-45, 2.0**-33, 2.0**-34, 1.0, -1.0, 126.5, 127.0, 1 / 3)


def tensor(values: F32Array) -> Tensor:
    return Tensor("t", values.shape, "f32", "file: t", values.copy)


def matrix(kind: str, rows: int, cols: int, seed: int = 0) -> F32Array:
    """A matrix of a kind of KINDS, float32 [rows, cols]."""
    rng = np.random.default_rng([seed, rows, cols])
    w = rng.normal(0, cols**-0.5, (rows, cols))
    scale = {"normal": 1.0, "tiny": 2.0**-37, "at zero": 2.0**-31, "huge": 2.0**46, "subnormal": 2.0**-130}.get(
        kind, 1.0
    )
    if kind == "zeros":
        w = np.zeros((rows, cols))
    elif kind == "edges":
        w = rng.choice(np.array(EDGES), (rows, cols))
    elif kind == "ties":
        w = rng.integers(-254, 255, (rows, cols)) / 2.0
        w[:, :1] = 127.0
    elif kind == "uneven rows":
        w = w * 2.0 ** rng.integers(-45, 45, (rows, 1))
    elif kind == "uneven columns":
        w = w * 2.0 ** rng.integers(-30, 10, (1, cols))
    elif kind == "sparse":
        w = np.where(rng.random((rows, cols)) < 0.05, w, 0.0)
    return (w * scale).astype(np.float32)


KINDS = (
    "normal",
    "zeros",
    "tiny",
    "at zero",
    "huge",
    "subnormal",
    "edges",
    "ties",
    "uneven rows",
    "uneven columns",
    "sparse",
)
SHAPES = ((3, 1), (2, 7), (4, 32), (3, 33), (2, 64), (3, 100), (2, 131), (1, 300))
FORMATS = ("f32", "bf16", "f16", "q8", "q8:32", "q8:64", "q8:128", "q4:row", "q4", "q4:64", "q4:128")
