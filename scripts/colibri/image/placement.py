# SPDX-License-Identifier: Apache-2.0
"""Where every tensor lies in the image: header, dense part, then each expert as one contiguous block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from colibri.axes import Attention
from colibri.image.format import ENTRY, FIXED_BYTES, PAGE_BYTES
from colibri.image.kernel_layouts import ALIGN_BYTES, PORTABLE, KernelLayout, align_up
from colibri.image.matrix import Matrix
from colibri.image.selftest import BYTES as SELFTEST_BYTES
from colibri.model import ModelConfig
from colibri.quantise import Format, Policy

INV_FREQ = "rope.inv_freq"
"""The one block that is no tensor of the model: float32 [rotary_dim / 2], in the part `tables`."""


@dataclass(frozen=True)
class Block:
    """A tensor at its place. `offset` and `bytes` in the image; `part` is the plan's word for it."""

    name: str
    part: str
    offset: int
    matrix: Matrix

    @property
    def bytes(self) -> int:
        """Bytes from its start to its end, inner alignment included."""
        return self.matrix.bytes


@dataclass(frozen=True)
class Expert:
    """The contiguous block of one expert, or of a layer's dense feed-forward (index 0)."""

    layer: int
    index: int
    offset: int
    bytes: int


@dataclass(frozen=True)
class ImageLayout:
    """Every offset of an image. Blocks are in rising order and do not overlap; the self-test vector ends the dense part."""

    header_bytes: int
    dense_bytes: int
    image_bytes: int
    selftest_offset: int
    blocks: tuple[Block, ...]
    experts: tuple[Expert, ...]
    kernels: KernelLayout = PORTABLE

    @cached_property
    def by_name(self) -> dict[str, Block]:
        """Tensor name -> block."""
        return {block.name: block for block in self.blocks}

    def part_bytes(self) -> dict[str, int]:
        """Bytes by part, `header` and `padding` included: they add up to image_bytes."""
        parts = {"header": FIXED_BYTES + ENTRY.size * len(self.experts)}
        for block in self.blocks:
            parts[block.part] = parts.get(block.part, 0) + block.matrix.stored_bytes()
        parts["tables"] += SELFTEST_BYTES
        parts["padding"] = self.image_bytes - sum(parts.values())
        return parts


def lay_out(config: ModelConfig, policy: Policy, expert_align: int, kernels: KernelLayout = PORTABLE) -> ImageLayout:
    """Place every tensor.

    expert_align  bytes, a multiple of 16: each expert starts at a multiple of it
    kernels       how matrices lie for the kernels that will read them
    """
    n_blocks = sum(max(layer.ffn.router.n_experts if layer.ffn.router else 1, 1) for layer in config.layers)
    header_bytes = align_up(FIXED_BYTES + ENTRY.size * n_blocks, PAGE_BYTES)
    cursor = header_bytes
    blocks: list[Block] = []

    def place(name: str, shape: tuple[int, ...], format_: Format, part: str) -> None:
        nonlocal cursor
        rows, cols = (1, *shape) if len(shape) == 1 else shape
        cursor = align_up(cursor, ALIGN_BYTES)
        blocks.append(Block(name, part, cursor, Matrix(rows, cols, format_, kernels)))
        cursor += blocks[-1].bytes

    shapes = config.tensor_shapes()
    for name, shape in shapes.items():
        if not _in_expert(name):
            place(name, shape, policy.format_of(name), _part(name))
    inv_freq = _inv_freq(config)
    place(INV_FREQ, (len(inv_freq),), Format("f32"), "tables")
    selftest_offset = align_up(cursor, ALIGN_BYTES)
    cursor = selftest_offset + SELFTEST_BYTES
    dense_bytes = align_up(cursor, ALIGN_BYTES) - header_bytes

    experts: list[Expert] = []
    for n, layer in enumerate(config.layers):
        router = layer.ffn.router
        for j in range(router.n_experts if router else 1):
            cursor = start = align_up(cursor, expert_align)
            prefix = f"layers.{n}.experts.{j}." if router else f"layers.{n}.ffn."
            for matrix in ("gate", "up", "down"):
                name = f"{prefix}{matrix}.weight"
                place(name, shapes[name], policy.format_of(name), _part(name))
            cursor = align_up(cursor, ALIGN_BYTES)
            experts.append(Expert(n, j, start, cursor - start))
    image_bytes = align_up(cursor, PAGE_BYTES)
    return ImageLayout(header_bytes, dense_bytes, image_bytes, selftest_offset, tuple(blocks), tuple(experts), kernels)


def _inv_freq(config: ModelConfig) -> tuple[float, ...]:
    mixer = config.layers[0].mixer
    assert isinstance(mixer, Attention)
    assert mixer.rope is not None
    return mixer.rope.inv_freq


def _in_expert(name: str) -> bool:
    return ".experts." in name or ".ffn." in name


def _part(name: str) -> str:
    if "norm" in name:
        return "norms"
    for key, part in ((".experts.", "experts"), (".ffn.", "dense"), (".attn.", "attention"), (".router.", "router")):
        if key in name:
            return part
    return {"embed.weight": "embedding", "head.weight": "head"}[name]
