# SPDX-License-Identifier: Apache-2.0
"""From the facts of a GGUF file to the axes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from colibri.axes import Attention, Layer
from colibri.errors import CheckpointError, UsageError
from colibri.importers.config import ConfigReader
from colibri.importers.families import FAMILIES
from colibri.importers.gguf import limits
from colibri.importers.gguf.architectures import ARCHITECTURES, Architecture
from colibri.importers.gguf.facts import Facts
from colibri.importers.gguf.ropes import rope_parameters, with_tensor_factors
from colibri.importers.gguf.tensors import bindings
from colibri.importers.limits import MAX_POSITIONS, MAX_ROW_ELEMS, MIN_NORM_EPS
from colibri.importers.text import quoted
from colibri.model import ModelConfig

__all__ = ["bindings", "find_architecture", "read_config"]

CORRECTION = "router.correction"
_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"

# Keys that say nothing that the tensors' shapes do not say, or nothing that counts when a model runs.
_WITHOUT_EFFECT = (
    *("vocab_size", "tensor_data_layout", "feed_forward_length", "expert_feed_forward_length"),
    *("expert_shared_feed_forward_length", "attention.value_length", "attention.key_length", "attention.head_count_kv"),
    *("attention.key_length_mla", "attention.value_length_mla", "rope.scaling.finetuned", "rope.scaling.factor"),
    *("rope.scaling.original_context_length", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"),
)


def find_architecture(facts: Facts) -> Architecture:
    """Return the table of the architecture; raises CheckpointError for an unknown one."""
    found = ARCHITECTURES.get(facts.architecture)
    if found is None:
        raise facts.metadata.error(
            "general.architecture",
            f"one of {', '.join(ARCHITECTURES)}",
            hint="import the model's safetensors, where docs/FAMILIES.md lists its family",
        )
    return found


def read_config(facts: Facts, architecture: Architecture) -> ModelConfig:
    """Return the axes; raises CheckpointError for a key that is missing, bad or unknown, and for a fact to be stated."""
    family_name, own = architecture.read(facts)
    parameters = rope_parameters(facts, truncate=architecture.truncate, longrope=architecture.longrope)
    config = {**_common(facts, architecture, parameters), **own}
    left = facts.metadata.unread(f"{facts.architecture}.", [facts.key(name) for name in _WITHOUT_EFFECT])
    if left:
        raise facts.metadata.error(
            left[0], "only keys whose effect is known", hint="this variant of the architecture is not supported"
        )
    family = FAMILIES[family_name]
    axes = family.config(ConfigReader(facts.metadata.where, config, {}))
    done = {n: _as_stored(layer, n, facts, architecture) for n, layer in enumerate(axes.layers)}
    return with_tensor_factors(replace(axes, layers=tuple(done.values())), facts)


def _common(facts: Facts, architecture: Architecture, parameters: dict[str, Any]) -> dict[str, Any]:
    """The keys that families share. Each is there, so that no default of a class counts."""
    head_dim = _head_dim(facts)
    rotary = facts.integer("rope.dimension_count", 2, MAX_ROW_ELEMS, head_dim or 2)
    if rotary % 2:
        raise facts.error("rope.dimension_count", "an even number")
    if head_dim and rotary != head_dim:
        parameters = {**parameters, "partial_rotary_factor": rotary / head_dim}
    epsilon = facts.number(architecture.epsilon, MIN_NORM_EPS, 1.0)
    vocab = _vocab(facts)
    return {
        "vocab_size": vocab,
        "hidden_size": facts.integer("embedding_length", 1, MAX_ROW_ELEMS),
        "num_hidden_layers": facts.n_blocks()[0],
        "num_attention_heads": facts.integer("attention.head_count", 1, MAX_ROW_ELEMS),
        "num_key_value_heads": _kv_heads(facts),
        "head_dim": head_dim,
        "intermediate_size": facts.width("feed_forward_length", "ffn_up", "ffn_up_exps"),
        "hidden_act": "silu",
        "rms_norm_eps": epsilon,
        "norm_eps": epsilon,
        "max_position_embeddings": facts.integer("context_length", 1, MAX_POSITIONS),
        "tie_word_embeddings": _HEAD not in facts.sources,
        "attention_bias": False,
        "rope_parameters": parameters,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _vocab(facts: Facts) -> int:
    source = facts.sources.get(_EMBEDDING)
    if source is None or len(source.shape) != 2:
        raise CheckpointError(
            facts.metadata.where,
            expected=f"tensor {quoted(_EMBEDDING)} of two dimensions",
            got="none",
            hint="the file holds no language model, or a part of one",
        )
    n = source.shape[0]
    if n > limits.MAX_VOCAB or (facts.has("vocab_size") and facts.integer("vocab_size", 1, limits.MAX_VOCAB) != n):
        raise facts.error("vocab_size", f"at most {limits.MAX_VOCAB}, and as {quoted(_EMBEDDING)} has: {n}")
    return n


def _kv_heads(facts: Facts) -> int | None:
    if not facts.has("attention.head_count_kv"):
        return None
    heads = facts.metadata.integers(facts.key("attention.head_count_kv"), 0, MAX_ROW_ELEMS)
    return max(heads) if len(set(heads) - {0}) == 1 else heads[0]


def _head_dim(facts: Facts) -> int | None:
    """A head's dimensions: key_length, or the hidden size over the heads. None where keys and values differ (latents)."""
    if facts.has("attention.kv_lora_rank"):
        return None
    n_heads = facts.integer("attention.head_count", 1, MAX_ROW_ELEMS)
    hidden = facts.integer("embedding_length", 1, MAX_ROW_ELEMS)
    if not facts.has("attention.key_length"):
        if hidden % n_heads:
            raise facts.error("attention.head_count", f"a divisor of embedding_length, {hidden}")
        return hidden // n_heads
    head_dim = facts.integer("attention.key_length", 2, MAX_ROW_ELEMS)
    if facts.integer("attention.value_length", 1, MAX_ROW_ELEMS, head_dim) != head_dim:
        raise facts.error("attention.value_length", f"the same as key_length, {head_dim}")
    return head_dim


def _as_stored(layer: Layer, n: int, facts: Facts, architecture: Architecture) -> Layer:
    """Biases as the tensors show them; pairs of q and k as the converter left them."""
    mixer = layer.mixer
    if isinstance(mixer, Attention):
        qkv = any(f"blk.{n}.attn_{name}.bias" in facts.sources for name in ("q", "qkv"))
        mixer = replace(mixer, qkv_bias=qkv, o_bias=f"blk.{n}.attn_output.bias" in facts.sources)
        if architecture.adjacent and mixer.rope is not None:
            mixer = replace(mixer, rope=replace(mixer.rope, pairing="adjacent"))
    router = layer.ffn.router
    if router is None or not router.correction or f"blk.{n}.exp_probs_b.bias" in facts.sources:
        return replace(layer, mixer=mixer)
    if facts.required(CORRECTION, "zero", "the router's correction is missing") != "zero":
        raise UsageError(
            f"--set {CORRECTION}", expected="zero", got=quoted(facts.wanted[CORRECTION]), hint="choose zero"
        )
    facts.stated[CORRECTION] = "zero"
    return replace(layer, mixer=mixer, ffn=replace(layer.ffn, router=replace(router, correction=False)))
