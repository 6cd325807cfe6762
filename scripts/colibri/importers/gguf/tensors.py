# SPDX-License-Identifier: Apache-2.0
"""From canonical names to GGUF's, which are the same in every architecture but for a few norms.

Experts lie in one tensor, the slowest dimension theirs; files from before 2024 have one each. Rows of q and k are bound as the
file has them: where its converter reordered them for adjacent pairs, the axes say `adjacent`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from colibri.axes import Attention, LatentAttention
from colibri.importers.bind import Binding, Part, Skip, Sources
from colibri.model import ModelConfig

NAMES: Mapping[str, str] = {
    "embed": "token_embd",
    "final_norm": "output_norm",
    "head": "output",
    "attn_norm": "attn_norm",
    "attn_post_norm": "post_attention_norm",
    "ffn_norm": "ffn_norm",
    "ffn_post_norm": "post_ffw_norm",
    "attn.q": "attn_q",
    "attn.k": "attn_k",
    "attn.v": "attn_v",
    "attn.o": "attn_output",
    "attn.q_norm": "attn_q_norm",
    "attn.k_norm": "attn_k_norm",
    "attn.gate": "attn_gate",
    "attn.q_a": "attn_q_a",
    "attn.q_a_norm": "attn_q_a_norm",
    "attn.kv_a": "attn_kv_a_mqa",
    "attn.kv_a_norm": "attn_kv_a_norm",
    "conv.in": "shortconv.in_proj",
    "conv.taps": "shortconv.conv",
    "conv.out": "shortconv.out_proj",
    "router": "ffn_gate_inp",
    "shared_gate": "ffn_gate_inp_shexp",
    **{f"ffn.{m}": f"ffn_{m}" for m in ("gate", "up", "down")},
    **{f"shared.{m}": f"ffn_{m}_shexp" for m in ("gate", "up", "down")},
}
_IN_THE_TABLE = "its values are in the table of rotary frequencies"
_ROPE_TENSORS = {
    "rope_freqs.weight": _IN_THE_TABLE,
    "rope_factors_short.weight": _IN_THE_TABLE,
    "rope_factors_long.weight": "for texts longer than the model's context length here",
}
_QKV = ("q", "k", "v")
Shape = tuple[int, ...]


def bindings(config: ModelConfig, sources: Sources, names: Mapping[str, str], n_extra: int) -> Iterator[Binding]:
    """Yield where each canonical tensor is; lazy.

    names    those that the architecture calls otherwise than NAMES
    n_extra  layers past the model's own, which predict further tokens in training
    """
    table = {**NAMES, **names}
    for target, shape in config.tensor_shapes().items():
        if not target.startswith("layers."):
            module, _, leaf = target.rpartition(".")
            yield Part(target, f"{table[module]}.{leaf}", shape)
            continue
        _, n, name = target.split(".", 2)
        yield _in_layer(config, int(n), name, shape, sources, table)
    for extra in range(len(config.layers), len(config.layers) + n_extra):
        yield Skip(f"blk.{extra}.", "multi-token prediction, not used when the model runs")
    for name, reason in _ROPE_TENSORS.items():
        yield Skip(name, reason)


def _in_layer(config: ModelConfig, n: int, name: str, shape: Shape, sources: Sources, table: Mapping[str, str]) -> Part:
    target, prefix = f"layers.{n}.{name}", f"blk.{n}."
    module, _, leaf = name.rpartition(".")
    mixer = config.layers[n].mixer
    if name == "attn.sinks":
        return Part(target, f"{prefix}attn_sinks.weight", shape)
    if name == "router.correction":
        return _thin(target, f"{prefix}exp_probs_b.bias", shape, sources)
    if name == "shared_gate.weight":
        return _thin(target, f"{prefix}{table[module]}.weight", shape, sources)
    if module.startswith("experts."):
        return _expert(config, n, name, shape, sources)
    if isinstance(mixer, LatentAttention):
        if module in ("attn.k_up", "attn.v_up"):
            return _up(mixer, target, prefix, module, sources)
        if module == "attn.q" and mixer.q_rank is not None:
            return Part(target, f"{prefix}attn_q_b.{leaf}", shape)
    if isinstance(mixer, Attention) and module in ("attn.q", "attn.k", "attn.v"):
        fused = f"{prefix}attn_qkv.{leaf}"
        if fused in sources:
            return _fused(mixer, target, fused, module[-1], shape)
    return Part(target, f"{prefix}{table[module]}.{leaf}", shape)


def _thin(target: str, source: str, shape: Shape, sources: Sources) -> Part:
    """A vector that some converters store with an axis of one more, or less."""
    vector = (max(shape),)
    stored = sources[source].shape if source in sources else shape
    held = stored if stored in (vector, (1, *vector)) else shape
    return Part(target, source, held, view=(1, *vector) if len(shape) == 2 else vector)


def _fused(a: Attention, target: str, source: str, which: str, shape: Shape) -> Part:
    """``attn_qkv``: the rows of q, then of k, then of v."""
    n_q, n_kv = a.n_heads * a.head_dim, a.n_kv_heads * a.head_dim
    start = dict(zip(_QKV, (0, n_q, n_q + n_kv), strict=True))[which]
    return Part(target, source, (n_q + 2 * n_kv, *shape[1:]), (slice(start, start + shape[0]),))


def _expert(config: ModelConfig, n: int, name: str, shape: Shape, sources: Sources) -> Part:
    """One of the stacked ``[E, width, H]``; of gate and up in one ``[E, 2 width, H]``, gate first; or a tensor of its own."""
    ffn, target = config.layers[n].ffn, f"layers.{n}.{name}"
    assert ffn.router is not None
    _, index, matrix, leaf = name.split(".")
    own, both = f"blk.{n}.ffn_{matrix}.{index}.{leaf}", f"blk.{n}.ffn_gate_up_exps.{leaf}"
    n_experts, j = ffn.router.n_experts, int(index)
    if own in sources:
        return Part(target, own, shape)
    if matrix != "down" and both in sources:
        start = 0 if matrix == "gate" else shape[0]
        rows = slice(start, start + shape[0])
        return Part(target, both, (n_experts, 2 * shape[0], *shape[1:]), (j, rows))
    return Part(target, f"blk.{n}.ffn_{matrix}_exps.{leaf}", (n_experts, *shape), (j,))


def _up(a: LatentAttention, target: str, prefix: str, module: str, sources: Sources) -> Part:
    """``attn_k_b [n_heads, r, dn]``, already transposed, and ``attn_v_b [n_heads, dv, r]``; or both in ``attn_kv_b``."""
    is_key = module == "attn.k_up"
    whole = f"{prefix}attn_kv_b.weight"
    if whole in sources:
        rows = a.nope_dim + a.value_dim
        part = slice(0, a.nope_dim) if is_key else slice(a.nope_dim, rows)
        view = (a.n_heads, rows, a.kv_rank)
        stored = (a.n_heads * rows, a.kv_rank)
        return Part(target, whole, stored, (slice(None), part), transposed=is_key, view=view, merged=True)
    shape = (a.n_heads, a.kv_rank, a.nope_dim) if is_key else (a.n_heads, a.value_dim, a.kv_rank)
    return Part(target, f"{prefix}attn_{'k' if is_key else 'v'}_b.weight", shape, merged=True)
