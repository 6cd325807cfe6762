# SPDX-License-Identifier: Apache-2.0
"""The engine's state, byte for byte: what `sizeof(colibri_state_t)` will be (docs/DESIGN.md 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from colibri.axes import Attention
from colibri.image.kernel_layouts import PORTABLE, KernelLayout, align_up, pad8
from colibri.model import ModelConfig
from colibri.quantise import Policy

HEADER_BYTES = 64
Kv = Literal["f32", "f16", "q8"]


@dataclass(frozen=True)
class StateLayout:
    """Sizes of the state. quant_bytes and quant_groups are those of model_config.h."""

    activation_bytes: int
    kv_bytes: int
    quant_bytes: int
    quant_groups: int

    @property
    def bytes(self) -> int:
        """COLIBRI_STATE_BYTES."""
        return self.activation_bytes + self.kv_bytes


def state_layout(config: ModelConfig, policy: Policy, kv: Kv, kernels: KernelLayout = PORTABLE) -> StateLayout:
    """Size every buffer of the state; the alignment at the end is counted with the activations."""
    a, f = config.layers[0].mixer, config.layers[0].ffn
    assert isinstance(a, Attention)
    assert a.rope is not None
    h, q = pad8(config.hidden_size), pad8(a.n_heads * a.head_dim)
    k, width = a.n_kv_heads * a.head_dim, pad8(f.width)
    scratch = pad8(max(config.max_seq, width + max(width, h), 2 * pad8(k)))
    n_floats = h + h + max(q, h) + scratch + a.rope.rotary_dim
    if f.router is not None:
        n_floats += f.router.n_experts + 2 * f.router.top_k
    quant, groups = _quantised_input(config, policy, kernels)
    fixed = HEADER_BYTES + 4 * n_floats + 4 * groups * (quant > 0) + quant
    n_cached = 2 * len(config.layers) * config.max_seq
    row = {"f32": 4 * k, "f16": 2 * k, "q8": 4 * a.n_kv_heads + k}
    kv_bytes = n_cached * row[kv]
    total = align_up(fixed + kv_bytes, 16)
    return StateLayout(total - kv_bytes, kv_bytes, quant, groups)


def _quantised_input(config: ModelConfig, policy: Policy, kernels: KernelLayout) -> tuple[int, int]:
    """Bytes and groups of the longest activation vector once quantised; (0, 1) for none."""
    quant, groups = 0, 1
    for name, shape in config.tensor_shapes().items():
        format_ = policy.format_of(name)
        if not format_.is_integer or (name == "embed.weight" and not config.tied_head):
            continue
        quant = max(quant, kernels.quant_bytes(format_, shape[1]))
        if format_.kind == "q8":
            groups = max(groups, format_.groups(shape[1]))
    return quant, groups
