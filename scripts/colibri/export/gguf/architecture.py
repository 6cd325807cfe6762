# SPDX-License-Identifier: Apache-2.0
"""Which of llama.cpp's architectures a model is, and its axes as that architecture's keys.

What an architecture has no key for is not checked here axis by axis: the file is read back, and the axes must be the same.
"""

from __future__ import annotations

import numpy as np

from colibri.axes import Attention, Rope
from colibri.errors import UsageError
from colibri.export.gguf.writer import Value
from colibri.importers.rope import inverse_frequencies
from colibri.model import F32Array, ModelConfig

WRITTEN = ("llama", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "olmoe")
_THETA = 10000.0


def find_architecture(config: ModelConfig) -> str:
    """Return the architecture whose tensors the model has; raises UsageError where there is none."""
    layer = config.layers[0]
    mixer, ffn = layer.mixer, layer.ffn
    if not isinstance(mixer, Attention) or mixer.rope is None or mixer.router is not None:
        raise refused("attention with rotary positions in every layer", type(mixer).__name__)
    sparse = ffn.router is not None
    if mixer.qk_norm is not None:
        names = {"head": "qwen3moe" if sparse else "qwen3", "vector": "olmoe"}
        if mixer.qk_norm.over not in names:
            raise refused("a norm of q and k before the rotation", "one after it")
        return names[mixer.qk_norm.over]
    if sparse and ffn.shared is not None:
        return "qwen2moe"
    return "qwen2" if mixer.qkv_bias and not mixer.o_bias else "llama"


def refused(expected: str, got: str) -> UsageError:
    """Return the error for a model that no architecture here can say."""
    return UsageError(
        "export-gguf",
        expected=f"a model that one of {', '.join(WRITTEN)} can say: {expected}",
        got=got,
        hint="colibri inspect CHECKPOINT shows its axes; llama.cpp's own converter knows more architectures",
    )


def keys(config: ModelConfig, architecture: str) -> dict[str, Value]:
    """Return the architecture's keys, without it in front."""
    layer = config.layers[0]
    mixer, ffn = layer.mixer, layer.ffn
    assert isinstance(mixer, Attention)
    assert mixer.rope is not None
    if layer.attn_norm is None:
        raise refused("a norm before the attention", "none")
    theta, _ = frequencies(mixer.rope, architecture)
    values: dict[str, Value] = {
        "block_count": len(config.layers),
        "context_length": config.max_seq,
        "embedding_length": config.hidden_size,
        "vocab_size": config.vocab_size,
        "feed_forward_length": ffn.width,
        "attention.head_count": mixer.n_heads,
        "attention.head_count_kv": mixer.n_kv_heads,
        "attention.key_length": mixer.head_dim,
        "attention.value_length": mixer.head_dim,
        "attention.layer_norm_rms_epsilon": layer.attn_norm.eps,
        "rope.freq_base": theta,
        "rope.dimension_count": mixer.rope.rotary_dim,
    }
    if ffn.router is not None:
        values |= {"expert_count": ffn.router.n_experts, "expert_used_count": ffn.router.top_k}
        if architecture in ("qwen2moe", "qwen3moe"):
            values["expert_feed_forward_length"] = ffn.width
    if ffn.shared is not None:
        values["expert_shared_feed_forward_length"] = ffn.shared.width
    return values


def frequencies(rope: Rope, architecture: str) -> tuple[float, F32Array | None]:
    """Return theta, and the divisors of its table where that is not the model's (llama.cpp's rope_freqs)."""
    table = np.asarray(rope.inv_freq, dtype=np.float32)
    n = rope.rotary_dim
    if len(table) > 1 and 0 < table[-1] < 1:
        exact = float(table[-1]) ** (-n / (n - 2))
        for theta in (float(round(exact)), float(f"{exact:.6g}"), exact):
            if np.array_equal(inverse_frequencies(theta, n), table):
                return theta, None
    plain = inverse_frequencies(_THETA, n)
    if np.array_equal(plain, table):
        return _THETA, None
    if architecture != "llama":
        raise refused("rotary frequencies that are powers of one base", "scaled ones")
    return _THETA, _divisors(plain, table)


def _divisors(plain: F32Array, table: F32Array) -> F32Array:
    """Float32 divisors that give the table's bits; raises UsageError where rounding allows none."""
    divisors = (plain / table).astype(np.float32)
    for step in (-1, 1, -2, 2):
        wrong = plain / divisors != table
        if not wrong.any():
            break
        near = (plain / table).astype(np.float32).view(np.int32) + step
        divisors = np.where(wrong, near.view(np.float32), divisors)
    if (plain / divisors != table).any():
        raise refused("rotary frequencies that are a quotient of float32 values", "others")
    return divisors
