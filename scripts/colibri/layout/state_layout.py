# SPDX-License-Identifier: Apache-2.0
"""The engine's state, byte for byte: what `sizeof(colibri_state_t)` will be (docs/DESIGN.md 2)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from colibri.axes import Attention, Convolution, Ffn, LatentAttention, Router
from colibri.image.kernel_layouts import PORTABLE, KernelLayout, align_up, pad8
from colibri.image.tables import INV_FREQ, table_sizes
from colibri.layout.cache_layout import CacheLayout, Kv, cache_layout
from colibri.model import ModelConfig
from colibri.quantise import Policy

HEADER_BYTES = 64


@dataclass(frozen=True)
class Largest:
    """Elements of the longest vector of each use in any layer; 0: no layer has it. Macros COLIBRI_MAX_... have the same names.

    q         queries, or what stands in their place;  kv: keys of one position;  gate: of the attention's output
    scores    of one head, a sink included
    width     of a feed-forward block;  experts, top_k: of a router
    ranking   of the router's scratch, in each of three uses: of any router's experts, as all take that way where one has to
    mixture   of one slot's heads in a mixture of attention
    q_rank ... value: of latent attention; latent_q: its queries before they meet the latent; latent: its key
    conv      the three vectors of a convolution
    source    tokens of the longest source;  counted: experts of a router with a capacity
    """

    q: int
    kv: int
    gate: int
    scores: int
    width: int
    experts: int
    top_k: int
    ranking: int
    mixture: int
    q_rank: int
    latent_q: int
    latent: int
    nope: int
    kv_rank: int
    latent_v: int
    conv: int
    rope_pairs: int
    source: int
    counted: int


@dataclass(frozen=True)
class StateLayout:
    """Sizes of the state. quant_bytes and quant_groups are those of model_config.h."""

    activation_bytes: int
    kv_bytes: int
    quant_bytes: int
    quant_groups: int
    largest: Largest
    cache: CacheLayout

    @property
    def bytes(self) -> int:
        """COLIBRI_STATE_BYTES."""
        return self.activation_bytes + self.kv_bytes


def state_layout(config: ModelConfig, policy: Policy, kv: Kv, kernels: KernelLayout = PORTABLE) -> StateLayout:
    """Size every buffer of the state; the alignment at the end is counted with the activations."""
    most, cache = _largest(config), cache_layout(config)
    h = pad8(config.hidden_size)
    n_floats = h + h + max(pad8(most.q), h) + _scratch(config, most) + 2 * most.rope_pairs
    n_floats += most.experts + 2 * most.top_k + most.source * config.hidden_size + most.counted
    quant, groups = _quantised_input(config, policy, kernels)
    fixed = HEADER_BYTES + 4 * n_floats + 4 * groups * (quant > 0) + quant
    kv_bytes = cache.bytes(kv)
    total = align_up(fixed + kv_bytes, 16)
    return StateLayout(total - kv_bytes, kv_bytes, quant, groups, most, cache)


def has_side_input(config: ModelConfig) -> bool:
    """Whether some router weighs the experts' input."""
    return any(layer.ffn.router is not None and layer.ffn.router.side == "input" for layer in config.layers)


def ranks(router: Router) -> bool:
    """Whether a router's choice needs more than its logits: vectors of scores and of selection values, or a group's logits."""
    plain = router.score == "raw" and not router.correction and router.groups is None and router.hierarchy is None
    return not plain or router.hidden != "none"


def _scratch(config: ModelConfig, most: Largest) -> int:
    """One use after the other in the same memory."""
    h, width = pad8(config.hidden_size), pad8(most.width)
    out = max(width, h) if most.mixture else width
    return max(
        pad8(most.scores),
        pad8(most.gate),
        2 * pad8(most.kv),
        2 * width + (h if has_side_input(config) else 0),
        out + h + pad8(most.mixture),
        3 * pad8(most.ranking),
        pad8(most.q_rank) + pad8(most.latent_q) + pad8(most.latent) + pad8(most.nope),
        pad8(most.kv_rank) + pad8(most.latent_v),
        pad8(most.conv),
    )


def _largest(config: ModelConfig) -> Largest:
    found = dict.fromkeys((f.name for f in fields(Largest)), 0)

    def see(**elements: int) -> None:
        for name, n in elements.items():
            found[name] = max(found[name], n)

    for layer in config.layers:
        match m := layer.mixer:
            case Attention():
                q, kv = m.n_heads * m.head_dim, m.n_kv_heads * m.head_dim
                seen = config.max_seq if m.over == "past" or config.encoder is None else config.encoder.max_source
                see(q=q, kv=kv, scores=seen + m.sinks, gate=q if m.gate else 0)
                if m.router is not None:
                    see(mixture=kv, **_of_router(m.router))
            case LatentAttention():
                latent, q = m.kv_rank + m.rope_dim, m.n_heads * (m.nope_dim + m.rope_dim)
                see(q=m.n_heads * max(latent, m.value_dim), scores=config.max_seq, q_rank=m.q_rank or 0, latent_q=q)
                see(latent=latent, nope=m.nope_dim, kv_rank=m.kv_rank, latent_v=m.n_heads * m.value_dim)
            case Convolution():
                see(conv=3 * config.hidden_size)
        see(width=_widest(layer.ffn))
        if layer.ffn.router is not None:
            see(**_of_router(layer.ffn.router))
    if config.encoder is not None:
        see(source=config.encoder.max_source)
    if found["ranking"]:
        found["ranking"] = found["experts"]
    return Largest(**found | {"rope_pairs": table_sizes(config).get(INV_FREQ, 0)})


def _of_router(router: Router) -> dict[str, int]:
    n = router.n_experts
    counted = n if router.capacity is not None else 0
    return {"experts": n, "top_k": router.top_k, "ranking": n if ranks(router) else 0, "counted": counted}


def _widest(ffn: Ffn) -> int:
    return max(ffn.width, ffn.shared.width if ffn.shared else 0, *(ffn.widths or ()))


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
