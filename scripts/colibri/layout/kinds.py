# SPDX-License-Identifier: Apache-2.0
"""A model as tables of layers, kinds of layer, norms, routers and blocks: what its engine is compiled with (docs/DESIGN.md 1).

Layers of equal axes are of one kind. Offsets of a kind count from 16 bytes before the layer's tensors, those of a shape from the
start of the block. 0 stands for "has none".
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Generic, TypeVar

from colibri.axes import Attention, Ffn, LatentAttention, Layer, Mixer, Norm, Router
from colibri.image.kernel_layouts import ALIGN_BYTES
from colibri.image.matrix import Matrix
from colibri.image.placement import ImageLayout, Owner, owner_of
from colibri.image.tables import rope_key, ropes, temperatures
from colibri.layout.cache_layout import CacheLayout
from colibri.layout.fold import Table
from colibri.layout.rows import Row, ffn_row, mixer_row, norm_row, rope_row, router_row
from colibri.model import ModelConfig

T = TypeVar("T", bound=Hashable)

DESCRIPTOR_BYTES = 28
"""Of a matrix: seven words."""

_PROJECTIONS = {
    **{
        name: name
        for name in ("attn.q", "attn.k", "attn.v", "attn.o", "attn.gate", "attn.q_a", "attn.k_up", "attn.v_up")
    },
    **{"attn.kv_a": "attn.k", "conv.out": "attn.o", "conv.in": "conv.in"},
}
"""Tensor -> the projection in whose stage it is."""

_VECTORS = (
    *("attn_norm.weight", "attn_post_norm.weight", "ffn_norm.weight", "ffn_post_norm.weight"),
    *("attn.q_norm.weight", "attn.k_norm.weight", "attn.q_a_norm.weight", "attn.kv_a_norm.weight", "attn.sinks"),
    *("conv.taps.weight", "conv.taps.bias", "shared_gate.weight", "shared_mix.weight", "shared_mix.bias", "ffn.bias"),
    *("router.weight", "router.bias", "router.hidden.weight", "router.correction"),
    *("attn.router.weight", "attn.router.bias", "attn.router.hidden.weight", "attn.router.correction"),
)


_FIRST_GATES = {"router.primary.weight": "router_hidden", "attn.router.primary.weight": "attn_router_hidden"}
"""Tensor -> the column of what stands at its place in other routers: a two-layer gate's first layer."""


class Pool(Generic[T]):
    """Distinct values in the order of their first use."""

    def __init__(self) -> None:
        self._index: dict[T, int] = {}

    def __getitem__(self, value: T) -> int:
        return self._index.setdefault(value, len(self._index))

    @property
    def values(self) -> list[T]:
        """The values by index."""
        return list(self._index)


class ModelTables:
    """The tables of a model. matrices: the distinct descriptors of what is multiplied, by index."""

    def __init__(self, config: ModelConfig, layout: ImageLayout, cache: CacheLayout) -> None:
        self._config, self._layout = config, layout
        self.matrices: Pool[Matrix] = Pool()
        self._norms: Pool[Norm] = Pool()
        self._routers: Pool[Router] = Pool()
        self._shapes: Pool[tuple[tuple[str, int], ...]] = Pool()
        self._kinds: Pool[Layer] = Pool()
        self._variants: list[Row] = []
        final_norm = self._norms[config.final_norm]
        assert final_norm == 0, "the engine takes the final norm's number for granted"
        self.encoder_norm = self._norms[config.encoder.final_norm] if config.encoder else 0
        layers = [self._layer(n, cache) for n in range(len(config.layers))]
        kinds = [self._kind(layer) for layer in self._kinds.values]
        self.tables = (
            Table("layer", layers),
            Table("kind", kinds),
            Table("norm", [norm_row(norm) for norm in self._norms.values]),
            Table("router", [router_row(router) for router in self._routers.values]),
            Table("shape", [dict(shape) for shape in self._shapes.values]),
            Table("variant", self._variants),
        )

    @property
    def bytes(self) -> int:
        """Flash of the tables on a 32-bit core, the descriptors of matrices included."""
        return sum(table.bytes for table in self.tables) + DESCRIPTOR_BYTES * len(self.matrices.values)

    def _layer(self, n: int, cache: CacheLayout) -> Row:
        layer = self._config.layers[n]
        first = self._config.layers.index(layer)
        assert self._inside(n) == self._inside(first), "layers of one kind are laid out alike"
        starts = cache.starts[n]._asdict()
        return {
            "kind": self._kinds[layer],
            "at": self._start(n),
            "blocks_at": self._place(_first_block(n, layer.ffn)),
            "attn_experts_at": self._place(Owner(n, "attention", 0)),
            **{f"{name}_at": start for name, start in starts.items()},
        }

    def _kind(self, layer: Layer) -> Row:
        n = self._config.layers.index(layer)
        inside = self._inside(n)
        row: Row = {"residual": float(layer.residual)}
        for name in ("attn_norm", "attn_post_norm", "ffn_norm", "ffn_post_norm"):
            norm = getattr(layer, name)
            row[name] = 0 if norm is None else self._norms[norm] + 1
        for name in _VECTORS:
            row[f"{_c_name(name)}_at"] = inside.get(name, 0)
        row |= {f"{column}_at": inside[name] for name, column in _FIRST_GATES.items() if name in inside}
        for stage in _PROJECTIONS.values():
            row |= {f"{_c_name(stage)}_{what}": 0 for what in ("matrix", "at", "bias_at")}
        for name, stage in _PROJECTIONS.items():
            if f"{name}.weight" in inside:
                row[f"{_c_name(stage)}_matrix"] = self.matrices[self._matrix(f"layers.{n}.{name}.weight")]
                row[f"{_c_name(stage)}_at"] = inside[f"{name}.weight"]
            if f"{name}.bias" in inside:
                row[f"{_c_name(stage)}_bias_at"] = inside[f"{name}.bias"]
        return row | self._mixer(n, layer.mixer) | self._ffn(n, layer.ffn)

    def _mixer(self, n: int, mixer: Mixer) -> Row:
        row = mixer_row(mixer, self._config.max_seq)
        row |= {"qk_norm": 0, "latent_norm": 0, "temperature_at": 0, "attn_router": 0, "attn_expert_stride": 0}
        row |= {"relative_bias_at": 0, "relative_bias_stride": 0}
        rope = mixer.rope if isinstance(mixer, Attention | LatentAttention) else None
        row |= rope_row(rope, ropes(self._config)[rope_key(rope)] if rope and rope.inv_freq else 0)
        if isinstance(mixer, LatentAttention):
            row["latent_norm"] = self._norms[mixer.norm]
        if isinstance(mixer, Attention):
            row["qk_norm"] = self._norms[mixer.qk_norm.norm] if mixer.qk_norm else 0
            if mixer.temperature:
                row["temperature_at"] = self._layout.by_name[temperatures(self._config)[mixer.temperature]].offset
            if mixer.relative_bias:
                table = self._layout.by_name[f"relative_bias.{mixer.over}"]
                row["relative_bias_at"] = table.offset
                row["relative_bias_stride"] = table.matrix.cols // mixer.n_heads
            if mixer.router:
                row |= self._mixture(n, mixer.router)
        return row

    def _mixture(self, n: int, router: Router) -> Row:
        """The experts of a mixture of attention: their matrices lie in blocks of their own."""
        start = self._place(Owner(n, "attention", 0))
        row: Row = {"attn_router": self._routers[router], "attn_expert_stride": self._stride(n, "attention")}
        for name in "qo":
            block = self._layout.by_name[f"layers.{n}.attn.experts.0.{name}.weight"]
            row |= {f"attn_{name}_matrix": self.matrices[block.matrix], f"attn_{name}_at": block.offset - start}
        return row

    def _ffn(self, n: int, ffn: Ffn) -> Row:
        """last: the block that every token passes, the dense or the shared one."""
        row = ffn_row(ffn) | {"router": self._routers[ffn.router] if ffn.router else 0}
        last = next((o for o in (Owner(n, "shared", 0), Owner(n, "dense", 0)) if o in self._layout.by_owner), None)
        row["last_at"] = self._place(last) - self._place(_first_block(n, ffn)) if last else 0
        row["last_shape"] = self._shape(last) if last else 0
        row["expert_stride"] = self._stride(n, "expert")
        row["expert_shape"] = self._shape(Owner(n, "expert", 0)) if ffn.router else 0
        row["first_variant"] = len(self._variants)
        if ffn.router is not None and has_unequal_experts(self._config):
            owners = [Owner(n, "expert", j) for j in range(ffn.router.n_experts)]
            start = self._place(owners[0])
            self._variants += [{"at": self._place(o) - start, "shape": self._shape(o)} for o in owners]
        return row

    def _shape(self, owner: Owner) -> int:
        """The geometry of a feed-forward block."""
        start, blocks = self._place(owner), self._layout.by_name
        names = {"expert": f"experts.{owner.index}", "shared": "shared", "dense": "ffn"}
        prefix = f"layers.{owner.layer}.{names[owner.kind]}."
        row = {"width": blocks[f"{prefix}up.weight"].matrix.rows}
        for name in ("gate", "up", "down"):
            weight, bias = blocks.get(f"{prefix}{name}.weight"), blocks.get(f"{prefix}{name}.bias")
            row[f"{name}_matrix"] = self.matrices[weight.matrix] if weight else 0
            row[f"{name}_at"] = weight.offset - start if weight else 0
            row[f"{name}_bias_at"] = bias.offset - start if bias else 0
        return self._shapes[tuple(row.items())]

    def _matrix(self, name: str) -> Matrix:
        return self._layout.by_name[name].matrix

    def _place(self, owner: Owner) -> int:
        place = self._layout.by_owner.get(owner)
        return place.offset if place else 0

    def _stride(self, n: int, kind: str) -> int:
        """Bytes from an expert to the next; 0 where there is no second."""
        second = self._layout.by_owner.get(Owner(n, kind, 1))
        return second.offset - self._place(Owner(n, kind, 0)) if second else 0

    def _start(self, n: int) -> int:
        """From where the offsets of a layer count: before its first tensor, so that no offset is 0."""
        return self._names[n][0][1] - ALIGN_BYTES

    def _inside(self, n: int) -> dict[str, int]:
        """Name relative to the layer -> offset from its start, of every tensor in the dense part."""
        start = self._start(n)
        return {name: offset - start for name, offset in self._names[n]}

    @cached_property
    def _names(self) -> list[list[tuple[str, int]]]:
        found: list[list[tuple[str, int]]] = [[] for _ in self._config.layers]
        for block in self._layout.blocks:
            if block.name.startswith("layers.") and owner_of(block.name) is None:
                _, n, name = block.name.split(".", 2)
                found[int(n)].append((name, block.offset))
        return found


def has_unequal_experts(config: ModelConfig) -> bool:
    """Whether experts of one layer differ in their width."""
    return any(layer.ffn.router is not None and len(set(layer.ffn.widths or ())) > 1 for layer in config.layers)


def _first_block(n: int, ffn: Ffn) -> Owner:
    return Owner(n, "expert" if ffn.router else "dense", 0)


def _c_name(name: str) -> str:
    return name.removesuffix(".weight").replace(".", "_")
