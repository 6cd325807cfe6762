# SPDX-License-Identifier: Apache-2.0
"""What one token of the sequence costs: multiply-accumulates and bytes of weights.

Where experts differ in size, or their number from token to token, a bound: the largest count. Behind an encoder these are the
decoder's. What a token of the source costs is `source_macs_per_token`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from colibri.axes import Attention, LatentAttention, Layer
from colibri.image.placement import Block, ImageLayout, Owner, owner_of
from colibri.model import ModelConfig

_MULTIPLIED = ("embedding", "head", "attention", "dense", "experts", "shared", "router")


def macs_per_token(config: ModelConfig, layout: ImageLayout) -> int:
    """Multiply-accumulates of the matrix products of one token, head included; attention over the cache comes on top."""
    return _sum(config, _of_step(config, layout), lambda block: block.matrix.macs if _is_matrix(block) else 0)


def source_macs_per_token(config: ModelConfig, layout: ImageLayout) -> int:
    """Multiply-accumulates of the matrix products of one token of a source, cross-attention's keys and values included."""
    if config.encoder is None:
        return 0
    of_step = {block.name for block in _of_step(config, layout)}
    blocks = (block for block in layout.blocks if block.name not in of_step)
    return _sum(config, blocks, lambda block: block.matrix.macs if _is_matrix(block) else 0)


def _of_step(config: ModelConfig, layout: ImageLayout) -> list[Block]:
    """Without what only the source passes."""
    if config.encoder is None:
        return list(layout.blocks)
    crossing = {
        n for n, layer in enumerate(config.layers) if isinstance(a := layer.mixer, Attention) and a.over == "encoded"
    }
    found = []
    for block in layout.blocks:
        word, _, rest = block.name.partition(".")
        n = int(rest.split(".")[0]) if word == "layers" else config.n_encoder
        key = ".attn.k." in block.name or ".attn.v." in block.name
        if n >= config.n_encoder and not (n in crossing and key) and word != "encoder_norm":
            found.append(block)
    return found


def operator_macs(config: ModelConfig, layout: ImageLayout) -> dict[str, int]:
    """The same by stage (docs/DESIGN.md 3), without attention."""
    blocks: dict[str, list[Block]] = defaultdict(list)
    for block in _of_step(config, layout):
        stage = _stage(block)
        if stage is not None and _is_matrix(block):
            blocks[stage].append(block)
    found = {stage: _sum(config, of_stage, lambda block: block.matrix.macs) for stage, of_stage in blocks.items()}
    if config.tied_head:
        found["head"] = layout.by_name["embed.weight"].matrix.macs
    return {stage: n for stage, n in found.items() if n}


def attention_macs(config: ModelConfig) -> list[tuple[int, int, int]]:
    """For each layer with attention: multiply-accumulates for each position seen, window and chunk (0: none).

    Cross-attention sees the source: the window is then its greatest length, negative.
    """
    found = []
    for layer in config.layers[config.n_encoder :]:
        match m := layer.mixer:
            case Attention(over="encoded"):
                assert config.encoder is not None
                found.append((2 * m.n_heads * m.head_dim, -config.encoder.max_source, 0))
            case Attention():
                found.append((2 * m.n_heads * m.head_dim, m.window or 0, m.chunk or 0))
            case LatentAttention():
                found.append((m.n_heads * (2 * m.kv_rank + m.rope_dim), m.window or 0, 0))
    return found


_STAGES = {
    "kv_a": "k",
    "in": "conv_in",
    "out": "o",
    "taps": "conv",
    "shared_gate": "down",
    "shared_mix": "down",
    "embed": None,
}


def _stage(block: Block) -> str | None:
    """The stage in which a matrix is multiplied."""
    parts = block.name.removesuffix(".weight").split(".")
    name = parts[-1]
    if "router" in parts:
        prefix = "attn_" if "attn" in parts else ""
        return f"{prefix}router_hidden" if name in ("hidden", "primary") else f"{prefix}router"
    if parts[-2:] == ["attn", "gate"]:
        return "attn_gate"
    return _STAGES.get(name, name)


def bytes_read_per_token(config: ModelConfig, layout: ImageLayout) -> int:
    """Bytes of weights that one token reads, row padding and scales included: every matrix once, and its embedding row."""
    embedding = layout.by_name["embed.weight"].matrix
    row = embedding.row_bytes + embedding.scales_bytes // embedding.rows
    tables = sum(block.matrix.bytes for block in layout.blocks if block.name.startswith("rope."))
    temperatures = 4 * sum(
        isinstance(m := layer.mixer, Attention) and m.temperature is not None for layer in config.layers
    )
    return row + tables + temperatures + _sum(config, _of_step(config, layout), _read_bytes)


def _sum(config: ModelConfig, blocks: Iterable[Block], cost: Callable[[Block], int]) -> int:
    """A cost over what one token uses of some blocks: of each layer's experts the top_k dearest."""
    total = 0
    of_experts: dict[tuple[int, str], dict[Owner, int]] = defaultdict(lambda: defaultdict(int))
    for block in blocks:
        owner = owner_of(block.name)
        if owner is not None and owner.kind in ("expert", "attention"):
            of_experts[owner.layer, owner.kind][owner] += cost(block)
        elif block.part != "tables" and (block.name != "embed.weight" or config.tied_head):
            total += cost(block)
    for (n, kind), costs in of_experts.items():
        total += sum(sorted(costs.values(), reverse=True)[: _top_k(config.layers[n], kind)])
    return total


def _top_k(layer: Layer, kind: str) -> int:
    router = (
        layer.ffn.router if kind == "expert" else layer.mixer.router if isinstance(layer.mixer, Attention) else None
    )
    return router.top_k if router else 0


def _is_matrix(block: Block) -> bool:
    """Not a norm, a bias, sinks or a correction."""
    return block.part in _MULTIPLIED and block.name.endswith(".weight")


def _read_bytes(block: Block) -> int:
    return block.matrix.data_bytes + block.matrix.scales_bytes
