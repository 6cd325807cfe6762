# SPDX-License-Identifier: Apache-2.0
"""The table of families in docs/FAMILIES.md, from the importers and the oracles: python tests/importers/families_table.py"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from colibri.axes import Attention, Convolution, Ffn, LatentAttention, Layer, Router
from colibri.importers import load
from colibri.importers.families import FAMILIES
from colibri.model import ModelConfig

ROOT = Path(__file__).parents[2]
ORACLES = ROOT / "tests" / "oracles"
DOCUMENT = ROOT / "docs" / "FAMILIES.md"
BEGIN, END = "<!-- generated: python tests/importers/families_table.py -->\n", "<!-- end of the generated part -->\n"


def _oracle_specs(file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"oracle_{file}", ORACLES / f"{file}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def table() -> str:
    """One row a family: what its oracles use beyond a plain Llama, and what they were compared with."""
    specs, formulas = _oracle_specs("families").FAMILY_ORACLES, _oracle_specs("formula_oracles").FORMULA_ORACLES
    by_family: dict[str, list[str]] = {name: [] for name in FAMILIES}
    configs: dict[str, ModelConfig] = {}
    for folder in sorted([*(ORACLES / "data").iterdir(), *(ORACLES / "encoder_decoder").iterdir()]):
        configs[folder.name] = load(folder).config
        by_family[configs[folder.name].family].append(folder.name)
    lines = ["| family | `model_type` | what it uses | oracles | compared with |", "|---|---|---|---|---|"]
    for name, family in FAMILIES.items():
        used = dict.fromkeys(word for oracle in by_family[name] for word in _model(configs[oracle]))
        published = any(
            o in formulas or (o in specs and specs[o].config.startswith("published:")) for o in by_family[name]
        )
        reference = "the published formula, in PyTorch" if published else "transformers"
        oracles = ", ".join(f"`{oracle}`" for oracle in by_family[name])
        lines.append(f"| {family.title} | `{name}` | {', '.join(used)} | {oracles} | {reference} |")
    return "\n".join(lines) + "\n"


def _model(config: ModelConfig) -> Iterator[str]:
    for layer in dict.fromkeys(config.layers):
        yield from _layer(layer)
    if config.encoder is not None:
        yield "encoder and decoder"
    if config.tied_head:
        yield "tied head"
    if config.head_bias:
        yield "head bias"
    if config.embedding_scale != 1 or config.logits_scale != 1:
        yield "embedding and logits factors"


def _layer(layer: Layer) -> Iterator[str]:
    match layer.mixer:
        case Attention():
            yield from _attention(layer.mixer)
        case LatentAttention():
            yield "latent attention" + (" with a query latent" if layer.mixer.q_rank else "")
            yield f"{layer.mixer.rope.pairing} RoPE"
        case Convolution():
            yield "short convolution"
    norms = [n for n in (layer.attn_norm, layer.ffn_norm, layer.attn_post_norm, layer.ffn_post_norm) if n is not None]
    if any(norm.kind == "layer" for norm in norms):
        yield "LayerNorm" + (" with bias" if norms[0].bias else "")
    if layer.attn_post_norm is not None:
        yield "norms after" + ("" if layer.attn_norm is None else " and before") + " each part"
    if layer.residual != 1:
        yield "residual factor"
    yield from _ffn(layer.ffn)


def _attention(a: Attention) -> Iterator[str]:
    if a.router is not None:
        yield f"mixture of attention, {a.router.top_k} of {a.router.n_experts}"
    if a.over == "encoded":
        yield "cross-attention"
        return
    if a.relative_bias is not None:
        yield "relative bias"
    elif a.rope is None:
        yield "layers without RoPE"
    elif a.rope.pairing == "adjacent":
        yield "adjacent RoPE"
    if a.rope is not None and a.rope.rotary_dim < a.head_dim:
        yield "partial RoPE"
    if a.rope is not None and a.rope.factor != 1:
        yield "RoPE factor"
    yield from (word for word, there in _ATTENTION_WORDS.items() if there(a))
    if a.qk_norm is not None:
        over = {"vector": "the whole query and key", "head": "each head", "head_after": "each head after RoPE"}
        yield f"norm of {over[a.qk_norm.over]}"


_ATTENTION_WORDS = {
    "window": lambda a: a.window is not None,
    "chunks": lambda a: a.chunk is not None,
    "q, k, v biases": lambda a: a.qkv_bias,
    "output bias": lambda a: a.o_bias,
    "clipped q, k, v": lambda a: a.clip is not None,
    "sinks": lambda a: a.sinks,
    "query temperature": lambda a: a.temperature is not None,
    "gated attention": lambda a: a.gate,
}


def _ffn(f: Ffn) -> Iterator[str]:
    if f.width == 0:
        return
    if f.router is None:
        yield "dense layers"
    if not f.gated:
        yield "no gate"
    if f.activation != "silu":
        yield f.activation
    yield from (word for word, there in _FFN_WORDS.items() if there(f))
    if f.router is not None:
        yield from _router(f.router)


_FFN_WORDS = {
    "clamped SwiGLU": lambda f: f.clamp is not None,
    "feed-forward biases": lambda f: f.bias,
    "experts of unequal width": lambda f: f.widths is not None,
    "shared block": lambda f: f.shared is not None and not f.shared.gated and not f.shared.mix,
    "gated shared block": lambda f: f.shared is not None and f.shared.gated,
    "mixed shared block": lambda f: f.shared is not None and f.shared.mix,
    "no gate": lambda f: not f.gated,
    "bias on the sum of experts": lambda f: f.output_bias,
}


def _router(r: Router) -> Iterator[str]:
    yield f"{'up to ' if r.top_p else ''}{r.top_k} of {r.n_experts} experts"
    if r.method == "sparsemixer":
        yield "sparsemixer"
        return
    if r.hierarchy is not None:
        yield f"gate of two levels, {r.hierarchy.top_groups} of {r.hierarchy.n_groups} groups"
        return
    if r.top_p is not None:
        yield "number of experts by a share of the probabilities"
    scores = {"raw": "", "softmax": "softmax of all", "sigmoid": "sigmoid"}[r.score]
    weights = {"score": "", "softmax": "softmax of the chosen", "sigmoid": "sigmoid of the chosen", "one": "unweighted"}
    yield scores or weights[r.weights]
    if r.hidden == "tanh":
        yield "two-layer router"
    if r.bias:
        yield "router bias"
    if r.correction:
        yield "correction of the choice"
    if r.groups is not None:
        yield f"groups by {'largest' if r.groups.score == 'max' else 'two largest'}"
    if r.renormalise is not None:
        yield "renormalised" + (" by the 2-norm" if r.renormalise.norm == "l2" else "")
    if r.scale != 1:
        yield "weights factor"
    if r.side == "input":
        yield "weights on the input"
    if r.capacity is not None:
        yield "capacity"


def with_table(document: str) -> str:
    """The document with the table as it is now."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text("utf-8")), "utf-8")
