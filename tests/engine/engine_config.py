# SPDX-License-Identifier: Apache-2.0
"""model_config.h of a tiny model, written from docs/DESIGN.md 1 without the packer: one kind of layer, with attention."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from engine_tiny import Case, Tiny

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
_FIELD = re.compile(r"\bCOLIBRI_((?:LAYER|KIND|NORM|ROUTER|SHAPE)_[A-Z0-9_]+)\(")
_PLAIN = re.compile(r"\bCOLIBRI_((?:HAS|MAX|CACHE)_[A-Z0-9_]+)\b(?!\()")

_PROJECTION = re.compile(r"\bPROJECTION\(.*, (KIND|SHAPE), (\w+), ")
_GATE = re.compile(r"\bGATE\(layer, kind, (\w+)\)")
"""Names that the firmware's macros put together."""


def pad8(n: int) -> int:
    return (n + 7) // 8 * 8


@functools.cache
def asked_for() -> tuple[set[str], set[str]]:
    """The fields of tables and the plain macros that the firmware reads: what a model does not have is 0 in it."""
    files = [*FIRMWARE.glob("engine/*.[ch]"), *FIRMWARE.glob("include/colibri/*.h")]
    text = "\n".join(path.read_text() for path in files)
    fields = set(_FIELD.findall(text))
    for table, name in _PROJECTION.findall(text):
        fields |= {f"{table}_{name}_{what}" for what in ("MATRIX", "AT", "BIAS_AT")}
    for name in _GATE.findall(text):
        fields |= {f"KIND_{name}{what}" for what in ("", "_AT", "_HIDDEN_AT", "_BIAS_AT", "_CORRECTION_AT")}
    fields |= {f"LAYER_{which}_SCALE_AT" for which in "KV"}
    return fields, set(_PLAIN.findall(text))


def braces(values) -> str:  # type: ignore[no-untyped-def]
    return "{ " + ", ".join(map(str, values)) + " }"


def even(values: list[int]) -> str:
    """Offsets that grow evenly from layer to layer."""
    step = values[1] - values[0] if len(values) > 1 else 0
    assert values == [values[0] + i * step for i in range(len(values))]
    return f"((size_t)(i) * {step}u + {values[0]}u)"


def largest(c: Case) -> dict[str, int]:
    return {
        "Q": c.heads * c.head_dim, "KV": c.kv_heads * c.head_dim, "SCORES": c.max_seq, "WIDTH": c.ffn, "EXPERTS": c.n_experts,
        "TOP_K": c.top_k, "ROPE_PAIRS": c.rotary // 2,
    }  # fmt: skip


def uses(c: Case) -> dict[str, int]:
    moe = int(c.n_experts > 0)
    return {
        "ATTENTION": 1, "ROPE": int(c.rotary > 0), "RMS_NORM": 1, "EXPERTS": moe, "DENSE": 1 - moe, "GATE": 1, "SWIGLU": 1,
    }  # fmt: skip


def kind_fields(c: Case, index: dict[str, int], row: dict[str, int]) -> dict[str, object]:
    """Of the one kind of layer. row: offsets of a layer's tensors, counted from 16 bytes before the first."""
    matrices = {f"ATTN_{m}_MATRIX": f"{index[m]}u" for m in "QKVO"}
    places = {f"ATTN_{m}_AT": row[m] for m in "QKVO"}
    places |= {"ATTN_NORM_AT": row["attn_norm"], "FFN_NORM_AT": row["ffn_norm"], "ROUTER_AT": row["router"]}
    pairs = c.rotary // 2
    return {
        "RESIDUAL": "1.0f", "ATTN_NORM": "1u", "FFN_NORM": "1u", "N_HEADS": f"{c.heads}u", "N_KV_HEADS": f"{c.kv_heads}u",
        "HEADS_PER_KV": f"{c.heads // c.kv_heads}u", "HEAD_DIM": f"{c.head_dim}u", "VALUE_DIM": f"{c.head_dim}u",
        "WINDOW": f"{c.window}u", "SCALE": f"{np.float32(c.head_dim**-0.5)!s}f", "ROPE_PAIRS": f"{pairs}u",
        "ROPE_STEP": "2u" if c.adjacent else "1u", "ROPE_DISTANCE": "1u" if c.adjacent else f"{pairs}u",
        "N_EXPERTS": f"{c.n_experts}u", "TOP_K": f"{c.top_k}u", "N_SLOTS": f"{max(c.top_k, 1)}u", "IS_GATED": "1u",
        **matrices, **{name: f"(size_t){at}u" for name, at in places.items()},
    }  # fmt: skip


def config_text(tiny: Tiny, offsets: dict[str, int], rows: list[dict[str, int]], blocks: list[list[int]],
                inside: dict[str, int]) -> str:  # fmt: skip
    """inside: offsets of up and down in a block, and its stride."""
    c = tiny.case
    kinds = {s.partition(":")[0] + ("_group" if s.startswith("q8:") else "") for s in (c.attention, c.experts, c.embedding,
                                                                                       c.head or c.embedding)}  # fmt: skip
    names = list(tiny.matrices)
    index = {name: i for i, name in enumerate(names)}
    starts = [min(at for at in row.values() if at) - 16 for row in rows]
    relative = {name: at - starts[0] if at else 0 for name, at in rows[0].items()}
    for row, start in zip(rows, starts, strict=True):
        assert relative == {name: at - start if at else 0 for name, at in row.items()}
    n_cached = c.max_seq * c.kv_heads * c.head_dim
    n_scales = c.max_seq * c.kv_heads
    cached = {"K": n_cached, "V": n_cached, "K_SCALE": n_scales, "V_SCALE": n_scales}
    fields: dict[str, object] = {
        "LAYER_KIND": "0u", "LAYER_AT": even(starts), "LAYER_BLOCKS_AT": even([row[0] for row in blocks]),
        **{f"LAYER_{name}_AT": even([layer * n for layer in range(c.layers)]) for name, n in cached.items()},
        "NORM_EPS": "1e-05f", "NORM_HAS_WEIGHT": "1u",
        "ROUTER_N_EXPERTS": f"{c.n_experts}u", "ROUTER_TOP_K": f"{c.top_k}u", "ROUTER_WEIGHTS": "1u",
        "SHAPE_WIDTH": f"{c.ffn}u", **{f"SHAPE_{m}_MATRIX": f"{index[m]}u" for m in ("GATE", "UP", "DOWN")},
        "SHAPE_UP_AT": f"(size_t){inside['up']}u", "SHAPE_DOWN_AT": f"(size_t){inside['down']}u",
        "KIND_EXPERT_STRIDE": f"{inside['stride']}u",
        **{f"KIND_{name}": value for name, value in kind_fields(c, index, relative).items()},
    }  # fmt: skip
    asked_fields, asked_plain = asked_for()
    fields = dict.fromkeys(sorted(asked_fields), "0u") | fields
    plain: dict[str, object] = dict.fromkeys(sorted(asked_plain), 0)
    plain |= {f"MAX_{name}": n for name, n in largest(c).items()} | {f"HAS_{name}": n for name, n in uses(c).items()}
    plain |= {f"CACHE_{name}": c.layers * n for name, n in cached.items()}
    plain |= {
        "CONFIG_HASH_WORDS": braces(f"{w}u" for w in tiny.hash_words), "FORMAT_VERSION": 2, "KERNEL_LAYOUT": 1,
        "IMAGE_BYTES": len(tiny.image), "WEIGHTS_ADDRESS": 0, "VOCAB_SIZE": c.vocab, "HIDDEN_SIZE": c.hidden,
        "MAX_SEQ": c.max_seq, "KV_F16": int(c.kv == "f16"), "KV_Q8": int(c.kv == "q8"),
        **{f"USE_{name.upper()}": int(name in kinds) for name in ("f32", "bf16", "f16", "q8", "q8_group", "q4")},
        **{f"N_{table}S": 1 for table in ("KIND", "NORM", "SHAPE")}, "N_LAYERS": c.layers, "N_ROUTERS": int(c.n_experts > 0),
        "N_VARIANTS": 0, "N_MATRICES": len(names), "MATRICES": braces(braces(m) for m in tiny.matrices.values()),
        "EMBEDDING_MATRIX": f"{index['EMBEDDING']}u", "HEAD_MATRIX": f"{index['HEAD']}u",
        **{f"{name}_AT": f"{at}u" for name, at in offsets.items()}, "HEAD_BIAS_AT": "0u", "ROPE_FACTOR_AT": "0u",
        "EMBEDDING_SCALE": "1.0f", "LOGITS_SCALE": "1.0f", "QUANT_GROUPS": tiny.quant_groups, "QUANT_BYTES": tiny.quant_elems,
        "STATE_BYTES": tiny.state_bytes, **c.extra,
    }  # fmt: skip
    lines = [f"#define COLIBRI_{name}(i) ((void)(i), {value})\n" for name, value in fields.items()]
    return "".join(f"#define COLIBRI_{name} {value}\n" for name, value in plain.items()) + "".join(lines)
