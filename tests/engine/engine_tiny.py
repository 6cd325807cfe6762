# SPDX-License-Identifier: Apache-2.0
"""Tiny models for the engine's tests: weights, image and model_config.h, written from docs/DESIGN.md without the packer."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import struct
import subprocess
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from engine_config import config_text, pad8

ROOT = Path(__file__).resolve().parents[2]
FIRMWARE = ROOT / "firmware"
HEADER_BYTES = 4096
SELFTEST_POSITIONS = 8
DTYPES = {"f32": 0, "bf16": 1, "f16": 2, "q8": 3, "q4": 4}
CFLAGS = [
    "-std=c11", "-ffreestanding", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror",
    "-ffp-contract=off", "-fno-math-errno",
]  # fmt: skip
GCC_FLAGS = ["-fno-tree-vectorize"]
CLANG_FLAGS = ["-fno-vectorize", "-fno-slp-vectorize"]


def compilers() -> list[str]:
    return [name for name in ("gcc", "clang-19") if shutil.which(name)]


def flags_of(compiler: str) -> list[str]:
    return CFLAGS + (CLANG_FLAGS if "clang" in compiler else GCC_FLAGS)


def engine_sources() -> list[Path]:
    return sorted(p for folder in ("engine", "kernels", "kernels/portable") for p in (FIRMWARE / folder).glob("*.c"))


@dataclass(frozen=True)
class Case:
    """One small architecture, with dimensions that are no multiple of 8 wherever they need not be."""

    name: str
    attention: str = "f32"
    experts: str = "f32"
    embedding: str = "f32"
    head: str | None = None  # None: tied
    hidden: int = 20
    ffn: int = 13
    vocab: int = 37
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 6
    layers: int = 2
    max_seq: int = 12
    n_experts: int = 5
    top_k: int = 2
    rotary: int = 4
    adjacent: int = 0
    window: int = 0
    kv: str = "f32"
    extra: dict[str, str] = field(default_factory=dict, hash=False)


CASES = [
    Case("moe_f32", head="f32"),
    Case("moe_q8", "q8", "q8", "q8", "q8", adjacent=1, window=4, kv="q8"),
    Case("moe_q8_group", "q8:32", "q8:32", "q8:64", "q8:64", hidden=40, ffn=72, head_dim=9, rotary=8),
    Case("moe_q4", "q8", "q4:32", "q8", "q4:64", hidden=44, ffn=70, n_experts=4, top_k=4),
    Case("moe_16", "bf16", "f16", "f16", "bf16", rotary=6, kv="f16"),
    Case("dense", "f32", "q8", "q8", None, n_experts=0, top_k=0, ffn=33, rotary=0, head_dim=8, hidden=16),
]


def split(spec: str) -> tuple[str, int]:
    dtype, _, group = spec.partition(":")
    return dtype, int(group or 0)


def quantise_rows(w: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    rows, cols = w.shape
    size = group or cols
    q = np.zeros((rows, cols), np.int8)
    s = np.zeros((rows, -(-cols // size)), np.float32)
    for g, begin in enumerate(range(0, cols, size)):
        part = w[:, begin : begin + size]
        amax = np.abs(part).max(axis=1)
        s[:, g] = amax / np.float32(127)
        q[:, begin : begin + size] = np.clip(np.rint(part.astype(np.float64) / s[:, g : g + 1]), -127, 127)
    return q, s


def encode(w: np.ndarray, spec: str) -> tuple[bytes, tuple[int, ...], np.ndarray]:
    """Return a matrix's bytes, its descriptor (model_config.h) and the values used, as float64."""
    dtype, group = split(spec)
    rows, cols = w.shape
    padded = np.zeros((rows, pad8(cols)), np.float32)
    padded[:, :cols] = w
    if dtype == "f32":
        data, used = padded.tobytes(), w
    elif dtype == "bf16":
        bits = padded.view(np.uint32)
        half = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
        data, used = half.tobytes(), (half.astype(np.uint32) << 16).view(np.float32)[:, :cols]
    elif dtype == "f16":
        half = padded.astype(np.float16)
        data, used = half.tobytes(), half.astype(np.float32)[:, :cols]
    elif dtype == "q8":
        q, s = quantise_rows(w, group)
        stored = np.zeros((rows, pad8(cols)), np.int8)
        stored[:, :cols] = q
        data = stored.tobytes() + b"\0" * (-stored.nbytes % 16)
        used = q.astype(np.float64) * np.repeat(s, group or cols, axis=1)[:, :cols]
        return data + s.tobytes(), (rows, cols, 3, group, 1, pad8(cols), len(data)), used
    else:
        n_groups = -(-cols // group)
        m = np.ones((rows, n_groups), np.uint8)
        q = np.zeros((rows, pad8(cols)), np.int8)
        s = np.zeros(rows, np.float32)
        for r in range(rows):
            d = [np.abs(w[r, g * group : (g + 1) * group]).max().astype(np.float64) / 7 for g in range(n_groups)]
            s[r] = max(d) / 255
            m[r] = [min(max(round(x / float(s[r])), 1), 255) for x in d]
            wide = np.repeat(m[r].astype(np.float64), group)[:cols] * float(s[r])
            q[r, :cols] = np.clip(np.rint(w[r] / wide), -7, 7)
        data = ((q[:, ::2] & 15) | (q[:, 1::2] << 4)).astype(np.uint8).tobytes()
        data += b"\0" * (-len(data) % 16)
        used = q[:, :cols] * np.repeat(m.astype(np.float64), group, axis=1)[:, :cols] * s[:, None]
        return data + s.tobytes() + m.tobytes(), (rows, cols, 4, group, 1, pad8(cols) // 2, len(data)), used
    return data, (rows, cols, DTYPES[dtype], 0, 1, len(data) // rows, 0), used.astype(np.float64)


class Tiny:
    """The weights of a case, its image and the text of its model_config.h."""

    def __init__(self, case: Case, seed: int = 1) -> None:
        self.case = case
        c = case
        rng = np.random.default_rng(seed)
        self.image = bytearray(HEADER_BYTES)
        self.used: dict[str, np.ndarray] = {}
        self.matrices: dict[str, tuple[int, ...]] = {}
        offsets: dict[str, int] = {}

        def matrix(name: str, kind: str, rows: int, cols: int, spec: str) -> int:
            w = (rng.standard_normal((rows, cols)) * (cols**-0.5)).astype(np.float32)
            data, self.matrices[kind], self.used[name] = encode(w, spec)
            return self._append(data)

        def floats(name: str, values: np.ndarray) -> int:
            self.used[name] = values.astype(np.float64)
            padded = np.zeros((*values.shape[:-1], pad8(values.shape[-1])), np.float32)
            padded[..., : values.shape[-1]] = values
            return self._append(padded.tobytes())

        def norm() -> np.ndarray:
            return (1 + 0.1 * rng.standard_normal(c.hidden)).astype(np.float32)

        q_elems, kv_elems = c.heads * c.head_dim, c.kv_heads * c.head_dim
        offsets["EMBEDDING"] = matrix("embedding", "EMBEDDING", c.vocab, c.hidden, c.embedding)
        if c.head is None:
            offsets["HEAD"], self.used["head"] = offsets["EMBEDDING"], self.used["embedding"]
            self.matrices["HEAD"] = self.matrices["EMBEDDING"]
        else:
            offsets["HEAD"] = matrix("head", "HEAD", c.vocab, c.hidden, c.head)
        offsets["FINAL_NORM"] = floats("final_norm", norm())
        inv_freq = (10000.0 ** (-np.arange(0, c.rotary, 2) / max(c.rotary, 1))).astype(np.float32)
        offsets["INV_FREQ"] = floats("inv_freq", inv_freq)
        offsets["SELFTEST"] = self._append(bytes(4 * 2 * SELFTEST_POSITIONS))  # no vector until a test writes one
        layer_rows, expert_rows = [], []
        for layer in range(c.layers):
            row = {"attn_norm": floats(f"{layer}.attn_norm", norm())}
            row["Q"] = matrix(f"{layer}.q", "Q", q_elems, c.hidden, c.attention)
            row["K"] = matrix(f"{layer}.k", "K", kv_elems, c.hidden, c.attention)
            row["V"] = matrix(f"{layer}.v", "V", kv_elems, c.hidden, c.attention)
            row["O"] = matrix(f"{layer}.o", "O", c.hidden, q_elems, c.attention)
            row["ffn_norm"] = floats(f"{layer}.ffn_norm", norm())
            if c.n_experts:
                router = rng.standard_normal((c.n_experts, c.hidden)).astype(np.float32)
                row["router"] = floats(f"{layer}.router", router)
            else:
                row["router"] = 0
            layer_rows.append(row)
            blocks = []
            for e in range(max(c.n_experts, 1)):
                gate = matrix(f"{layer}.{e}.gate", "GATE", c.ffn, c.hidden, c.experts)
                up = matrix(f"{layer}.{e}.up", "UP", c.ffn, c.hidden, c.experts)
                down = matrix(f"{layer}.{e}.down", "DOWN", c.hidden, c.ffn, c.experts)
                blocks.append(gate)
                block = {"up": up - gate, "down": down - gate, "stride": len(self.image) - gate}
            expert_rows.append(blocks)
        self.image.extend(b"\0" * (-len(self.image) % 64))
        self.offsets, self.layer_rows = offsets, layer_rows
        self.hash_words = struct.unpack("<4I", hashlib.sha256(repr(case).encode()).digest()[:16])
        self._write_header()
        self._lay_out_state()
        self.config = config_text(self, offsets, layer_rows, expert_rows, block)

    @property
    def vocab(self) -> int:
        return self.case.vocab

    def _append(self, data: bytes) -> int:
        offset = len(self.image)
        self.image.extend(data + b"\0" * (-len(data) % 16))
        return offset

    def _write_header(self) -> None:
        header = b"COLIBRI\0" + struct.pack("<IIQ4III", 2, HEADER_BYTES, len(self.image), *self.hash_words, 1,
                                             zlib.crc32(self.image[HEADER_BYTES:]))  # fmt: skip
        self.image[: len(header)] = header
        self.image[252:256] = struct.pack("<I", zlib.crc32(self.image[:252]))

    def _lay_out_state(self) -> None:
        """Names and places of the state's buffers (docs/DESIGN.md 2)."""
        c = self.case
        quantised = [m for m in self.matrices.values() if m[2] >= 3]
        h, f, k = pad8(c.hidden), pad8(c.ffn), c.kv_heads * c.head_dim
        self.quant_elems = max([pad8(m[1]) for m in quantised], default=0)
        self.quant_groups = max([-(-m[1] // m[3]) for m in quantised if m[2] == 3 and m[3]], default=1)
        scratch = pad8(max(c.max_seq, f + max(f, h), 2 * pad8(k)))
        buffers = {
            "header": 64, "x": 4 * h, "norm": 4 * h, "q": 4 * max(pad8(c.heads * c.head_dim), h), "scratch": 4 * scratch,
            "router": 4 * c.n_experts, "expert_ids": 4 * c.top_k, "expert_weights": 4 * c.top_k, "rope": 4 * c.rotary,
            "quant_scales": 4 * self.quant_groups if self.quant_elems else 0, "quant": self.quant_elems,
        }  # fmt: skip
        self.buffers: dict[str, slice] = {}
        state = 0
        for name, n_bytes in buffers.items():
            self.buffers[name] = slice(state, state + n_bytes)
            state += n_bytes
        per_position = 2 * {"f32": 4 * k, "f16": 2 * k, "q8": 4 * c.kv_heads + k}[c.kv]
        state += c.layers * c.max_seq * per_position
        self.state_bytes = (state + 15) // 16 * 16


class Model(ctypes.Structure):
    _fields_ = [("image", ctypes.c_void_p), ("magic", ctypes.c_uint32)]


class Rng(ctypes.Structure):
    _fields_ = [("state", ctypes.c_uint64)]


class Sampling(ctypes.Structure):
    _fields_ = [("temperature", ctypes.c_float), ("top_k", ctypes.c_int32), ("top_p", ctypes.c_float)]


class Scrub(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_size_t), ("crc", ctypes.c_uint32)]


class Matrix(ctypes.Structure):
    _fields_ = [
        (n, ctypes.c_uint32) for n in ("rows", "cols", "dtype", "group", "layout", "row_bytes", "scales_offset")
    ]


class Gate(ctypes.Structure):
    _fields_ = [("router", ctypes.c_uint32)] + [
        (n, ctypes.c_void_p) for n in ("weights", "hidden", "bias", "correction")
    ]


class Vector(ctypes.Structure):
    _fields_ = [("values", ctypes.c_void_p), ("quant", ctypes.c_void_p), ("quant_scales", ctypes.c_void_p)]


def aligned(n_bytes: int, alignment: int = 64) -> np.ndarray:
    """Return zeroed bytes that start on a boundary; the array keeps the memory alive."""
    raw = np.zeros(n_bytes + alignment, np.uint8)
    return raw[-raw.ctypes.data % alignment :][:n_bytes]


def statuses() -> dict[str, int]:
    text = (FIRMWARE / "include/colibri/status.h").read_text()
    return {name: int(value) for name, value in re.findall(r"COLIBRI_(\w+) = (-?\d+)", text)}


def stages() -> dict[str, int]:
    """Number of each stage."""
    text = (FIRMWARE / "include/colibri/state.h").read_text()
    return {name: i for i, name in enumerate(re.findall(r"^    COLIBRI_STAGE_(\w+),", text, re.MULTILINE))}


def compile_library(tiny: Tiny, folder: Path, compiler: str = "gcc", *flags: str) -> ctypes.CDLL:
    (folder / "model_config.h").write_text(tiny.config)
    library = folder / f"engine-{compiler}-{abs(hash(flags)):x}.so"
    subprocess.run(
        [compiler, *flags_of(compiler), "-O2", "-mfma", *flags, "-shared", "-fPIC", f"-I{FIRMWARE / 'include'}", f"-I{FIRMWARE}",
         f"-I{folder}", *map(str, engine_sources()), str(Path(__file__).with_name("host_port.c")), "-o", str(library)],
        check=True,
    )  # fmt: skip
    library_handle = ctypes.CDLL(str(library), mode=os.RTLD_LOCAL | os.RTLD_NOW)
    for name in ("test_exp", "test_silu", "colibri_fma_portable", "colibri_dot_portable"):
        if hasattr(library_handle, name):
            getattr(library_handle, name).restype = ctypes.c_float
    return library_handle


class Engine:
    """One compiled engine with its image, one state and one logits buffer."""

    def __init__(self, tiny: Tiny, library: ctypes.CDLL) -> None:
        self.tiny, self.lib = tiny, library
        self.image = aligned(len(tiny.image))
        self.image[:] = np.frombuffer(tiny.image, np.uint8)
        self.state = aligned(tiny.state_bytes, 16)
        self.header = self.state[:64].view(np.uint32)
        self.logits = np.full(tiny.vocab, 7, np.float32)
        self.model = Model()
        assert self.init() == 0
        assert self.state_init() == 0

    @property
    def case(self) -> Case:
        return self.tiny.case

    def init(self, flags: int = 0) -> int:
        return self.lib.colibri_init(ctypes.byref(self.model), ctypes.c_void_p(self.image.ctypes.data),
                                     ctypes.c_size_t(len(self.image)), flags)  # fmt: skip

    def state_init(self) -> int:
        return self.lib.colibri_state_init(self.state_at, ctypes.byref(self.model))

    @property
    def state_at(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.state.ctypes.data)

    def floats(self, name: str) -> np.ndarray:
        return self.state[self.tiny.buffers[name]].view(np.float32)

    def run_to(self, ids: list[int], stage: int) -> None:
        while self.header[4] != stage:
            assert self.step(ids, 0) == 1

    def step(self, ids: list[int], max_macs: int, logits: bool = True) -> int:
        array = np.array(ids, np.int32)
        return self.lib.colibri_step(
            ctypes.byref(self.model), self.state_at, ctypes.c_void_p(array.ctypes.data), len(ids),
            ctypes.c_void_p(self.logits.ctypes.data if logits else None), ctypes.c_uint32(max_macs),
        )  # fmt: skip

    def forward(self, ids: list[int], logits: bool = True) -> int:
        array = np.array(ids, np.int32)
        return self.lib.colibri_forward(
            ctypes.byref(self.model), self.state_at, ctypes.c_void_p(array.ctypes.data), len(ids),
            ctypes.c_void_p(self.logits.ctypes.data if logits else None), None,
        )  # fmt: skip

    @property
    def position(self) -> int:
        return self.lib.colibri_position(self.state_at)

    def rewind(self, position: int) -> int:
        return self.lib.colibri_rewind(self.state_at, position)

    def snapshot(self) -> tuple[bytes, bytes]:
        return self.state.tobytes(), self.logits.tobytes()


@functools.cache
def tiny_of(name: str) -> Tiny:
    return Tiny(next(c for c in CASES if c.name == name))


def with_extra(name: str, **extra: str) -> Tiny:
    case = next(c for c in CASES if c.name == name)
    return Tiny(replace(case, extra=extra))
