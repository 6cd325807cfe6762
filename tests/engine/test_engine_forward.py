# SPDX-License-Identifier: Apache-2.0
"""The forward pass: close to float64, and the same bits from any compiler, under any control register."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from engine_tiny import CASES, Engine, Tiny, compilers, split, stages

NAMES = [c.name for c in CASES]
IDS = [3, 36, 0, 17, 17, 9, 21, 5, 30]


def quantised(x: np.ndarray, spec: str) -> np.ndarray:
    """Return x as an integer product sees it."""
    dtype, group = split(spec)
    if dtype not in ("q8", "q4"):
        return x
    size = group if dtype == "q8" and group else len(x)
    out = x.copy()
    for begin in range(0, len(x), size):
        part = out[begin : begin + size]
        s = np.abs(part).max() / 127
        part[:] = np.rint(part / s) * s
    return out


def reference(tiny: Tiny, ids: list[int]) -> np.ndarray:
    """Return float64 logits of the last position, written from the formulas and not from the engine."""
    c, w = tiny.case, tiny.used

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x * x).mean() + 1e-5) * w[name]

    def product(name: str, x: np.ndarray, spec: str) -> np.ndarray:
        return w[name] @ quantised(x, spec)

    def rope(x: np.ndarray, pos: int) -> np.ndarray:
        x = x.reshape(-1, c.head_dim).copy()
        n = c.rotary
        a, b = (slice(0, n, 2), slice(1, n, 2)) if c.adjacent else (slice(0, n // 2), slice(n // 2, n))
        cos, sin = np.cos(pos * w["inv_freq"]), np.sin(pos * w["inv_freq"])
        x[:, a], x[:, b] = x[:, a] * cos - x[:, b] * sin, x[:, b] * cos + x[:, a] * sin
        return x

    cache: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(c.layers)]
    for pos, token in enumerate(ids):
        x = w["embedding"][token].copy()
        for layer in range(c.layers):
            n = norm(x, f"{layer}.attn_norm")
            q = rope(product(f"{layer}.q", n, c.attention), pos) * c.head_dim**-0.5
            k = rope(product(f"{layer}.k", n, c.attention), pos)
            v = product(f"{layer}.v", n, c.attention).reshape(-1, c.head_dim)
            if c.kv == "f16":
                k, v = (x.astype(np.float16).astype(float) for x in (k, v))
            if c.kv == "q8":
                k = np.stack([quantised(h, "q8") for h in k])
                v = np.stack([quantised(h, "q8") for h in v])
            cache[layer].append((k, v))
            seen = cache[layer][max(0, pos - c.window + 1) if c.window else 0 :]
            heads = []
            for h in range(c.heads):
                kv = h // (c.heads // c.kv_heads)
                z = np.array([kt[kv] @ q[h] for kt, _ in seen])
                p = np.exp(z - z.max())
                p /= p.sum()
                heads.append(sum(pt * vt[kv] for pt, (_, vt) in zip(p, seen, strict=True)))
            x = x + product(f"{layer}.o", np.concatenate(heads), c.attention)
            n = norm(x, f"{layer}.ffn_norm")
            if c.n_experts:
                z = w[f"{layer}.router"] @ n
                chosen = np.argsort(-z, kind="stable")[: c.top_k]
                a = np.exp(z[chosen] - z[chosen[0]])
                weights = a / a.sum()
            else:
                chosen, weights = np.array([0]), np.array([1.0])
            y = np.zeros(c.hidden)
            for e, weight in zip(chosen, weights, strict=True):
                g = product(f"{layer}.{e}.gate", n, c.experts)
                u = product(f"{layer}.{e}.up", n, c.experts)
                y += weight * product(f"{layer}.{e}.down", g / (1 + np.exp(-g)) * u, c.experts)
            x = x + y
    return product("head", norm(x, "final_norm"), c.head or c.embedding)


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_close_to_float64(name: str, engine_of: Callable[..., Engine]) -> None:
    engine = engine_of(name)
    expected = reference(engine.tiny, IDS)
    assert engine.forward(IDS) == 0
    # Integer formats: an activation half-way between two int8 values may round the other way; binary16: between two of those.
    floats = all(m[2] < 3 for m in engine.tiny.matrices.values())
    tolerance = (2e-5 if engine.tiny.case.kv == "f32" else 1e-3) if floats else 1e-2
    assert np.abs(engine.logits - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize(
    "name", ["moe_q8_group", *(pytest.param(name, marks=pytest.mark.slow) for name in ("moe_q8", "moe_16"))]
)
def test_compilers_levels_and_the_integer_fma_give_the_same_bits(name: str, engine_of: Callable[..., Engine]) -> None:
    builds = [(c, f) for c, f in (("gcc", "-O0"), ("clang-19", "-O3")) if c in compilers()] + [
        ("gcc", "-DCOLIBRI_SOFT_FMA=1")
    ]
    expected = engine_of(name)
    assert expected.forward(IDS) == 0
    for build in builds:
        engine = engine_of(name, *build)
        assert engine.forward(IDS) == 0
        assert expected.snapshot() == engine.snapshot(), build


# Flush-to-zero and denormals-are-zero; round up; round to zero with every flag raised; round down.
@pytest.mark.parametrize("mxcsr", [0x9FC0, 0x5F80, 0x7FBF, 0x3F80])
def test_the_callers_control_register_changes_nothing_and_is_restored(
    mxcsr: int, engine_of: Callable[..., Engine]
) -> None:
    plain = engine_of("moe_q8_group")
    assert plain.forward(IDS) == 0
    other = engine_of("moe_q8_group")
    control = ctypes.c_uint32(mxcsr)
    ids = np.array(IDS, np.int32)
    status = other.lib.test_forward_under(
        ctypes.byref(control), ctypes.byref(other.model), other.state_at, ctypes.c_void_p(ids.ctypes.data), len(ids),
        ctypes.c_void_p(other.logits.ctypes.data),
    )  # fmt: skip
    assert status == 0
    assert control.value == mxcsr
    assert plain.snapshot() == other.snapshot()


def test_cycle_count_is_the_difference_of_the_ports_counter(engine_of: Callable[..., Engine]) -> None:
    engine = engine_of("moe_f32")
    count = ctypes.c_uint64(5)
    ids = np.array([1, 2], np.int32)
    call = [ctypes.byref(engine.model), engine.state_at, ctypes.c_void_p(ids.ctypes.data), 2, None]
    assert engine.lib.colibri_forward(*call, ctypes.byref(count)) == 0
    assert count.value == 1000


def test_pad_lanes_are_zero_for_the_matrix_that_follows(engine_of: Callable[..., Engine]) -> None:
    """Whatever the shared buffers held before: garbage is put there by hand."""
    attention, act = stages()["ATTENTION"], stages()["ACT"]
    grouped = engine_of("moe_q8_group")  # 36 elements of q, 40 of the sum
    grouped.run_to([1], attention)
    grouped.floats("q")[36:] = 7
    assert grouped.step([1], 0) == 1
    assert not grouped.floats("q")[36:40].any()
    floats = engine_of("moe_f32")  # ffn 13
    floats.run_to([1], act)
    floats.floats("scratch")[13:16] = 7
    assert floats.step([1], 0) == 1
    assert not floats.floats("scratch")[13:16].any()
    odd = engine_of("moe_q8")  # hidden size 20
    odd.run_to([1], stages()["Q"])
    quant = odd.state[odd.tiny.buffers["quant"]]
    quant[:] = 7
    assert odd.step([1], 0) == 1
    assert not quant[20:24].any()
