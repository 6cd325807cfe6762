# SPDX-License-Identifier: Apache-2.0
"""Where everything lies in the image: header, dense part, then each expert as one contiguous block, and the tokenizer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from colibri.image.format import ENTRY, FIXED_BYTES, PAGE_BYTES
from colibri.image.kernel_layouts import ALIGN_BYTES, PORTABLE, KernelLayout, align_up
from colibri.image.matrix import Matrix
from colibri.image.selftest import BYTES as SELFTEST_BYTES
from colibri.image.tables import RELATIVE_BIAS, table_sizes
from colibri.model import ModelConfig
from colibri.quantise import Format, Policy

_IN_BLOCK = re.compile(
    r"layers\.(\d+)\.(experts\.|attn\.experts\.|shared|ffn)(\d*)\.(?:gate|up|down|q|o)\.(?:weight|bias)"
)
_KIND = {"experts.": "expert", "attn.experts.": "attention", "shared": "shared", "ffn": "dense"}


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
class Owner:
    """To which contiguous block a tensor belongs. kind: of image.format.BLOCK_KINDS; index: of the expert, otherwise 0."""

    layer: int
    kind: str
    index: int


@dataclass(frozen=True)
class Expert:
    """A contiguous block: an expert, a layer's shared or dense feed-forward, an expert of its attention, or the tokenizer."""

    owner: Owner
    offset: int
    bytes: int


TOKENIZER = Owner(0, "tokenizer", 0)


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

    @cached_property
    def by_owner(self) -> dict[Owner, Expert]:
        """Owner -> contiguous block."""
        return {expert.owner: expert for expert in self.experts}

    @property
    def tokenizer(self) -> Expert | None:
        """The block of the tokenizer's tables, where the image has one."""
        return self.by_owner.get(TOKENIZER)

    def part_bytes(self) -> dict[str, int]:
        """Bytes by part, `header` and `padding` included: they add up to image_bytes."""
        parts = {"header": FIXED_BYTES + ENTRY.size * len(self.experts)}
        for block in self.blocks:
            parts[block.part] = parts.get(block.part, 0) + block.matrix.stored_bytes()
        parts["tables"] = parts.get("tables", 0) + SELFTEST_BYTES
        if self.tokenizer is not None:
            parts["tokenizer"] = self.tokenizer.bytes
        parts["padding"] = self.image_bytes - sum(parts.values())
        return parts


def owner_of(name: str) -> Owner | None:
    """The contiguous block of a tensor; None: it is in the dense part."""
    match = _IN_BLOCK.fullmatch(name)
    return Owner(int(match[1]), _KIND[match[2]], int(match[3] or 0)) if match else None


def lay_out(
    config: ModelConfig,
    policy: Policy,
    expert_align: int,
    kernels: KernelLayout = PORTABLE,
    tokenizer_bytes: int | None = None,
) -> ImageLayout:
    """Place every tensor.

    expert_align     bytes, a multiple of 16: each contiguous block starts at a multiple of it
    kernels          how matrices lie for the kernels that will read them
    tokenizer_bytes  of the tokenizer's tables; None: the image has no tokenizer
    """
    shapes = config.tensor_shapes()
    owned = [(owner, list(names)) for owner, names in _by_owner(shapes)]
    n_blocks = len(owned) + (tokenizer_bytes is not None)
    header_bytes = align_up(FIXED_BYTES + ENTRY.size * n_blocks, PAGE_BYTES)
    cursor = header_bytes
    blocks: list[Block] = []

    def place(name: str, shape: tuple[int, ...], format_: Format, part: str) -> None:
        nonlocal cursor
        rows, cols = (1, *shape) if len(shape) == 1 else shape
        cursor = align_up(cursor, ALIGN_BYTES)
        blocks.append(Block(name, part, cursor, Matrix(rows, cols, format_, kernels)))
        cursor += blocks[-1].bytes

    for name, shape in shapes.items():
        if owner_of(name) is None and not name.startswith(RELATIVE_BIAS):  # which is folded into a table
            place(name, shape, policy.format_of(name), _part(name))
    for name, n_elems in table_sizes(config).items():
        place(name, (n_elems,), Format("f32"), "tables")
    selftest_offset = align_up(cursor, ALIGN_BYTES)
    cursor = selftest_offset + SELFTEST_BYTES
    dense_bytes = align_up(cursor, ALIGN_BYTES) - header_bytes

    experts: list[Expert] = []
    for owner, names in owned:
        cursor = start = align_up(cursor, expert_align)
        for name in names:
            place(name, shapes[name], policy.format_of(name), _part(name))
        cursor = align_up(cursor, ALIGN_BYTES)
        experts.append(Expert(owner, start, cursor - start))
    if tokenizer_bytes is not None:
        start = align_up(cursor, expert_align)
        cursor = start + tokenizer_bytes
        experts.append(Expert(TOKENIZER, start, tokenizer_bytes))
    image_bytes = align_up(cursor, PAGE_BYTES)
    return ImageLayout(header_bytes, dense_bytes, image_bytes, selftest_offset, tuple(blocks), tuple(experts), kernels)


def _by_owner(names: dict[str, tuple[int, ...]]) -> Iterator[tuple[Owner, Iterator[str]]]:
    """The tensors of each contiguous block, in the order of execution."""
    return groupby((name for name in names if owner_of(name)), lambda name: owner_of(name) or Owner(0, "", 0))


_PARTS = (
    (re.compile(r".*norm\.(weight|bias)"), "norms"),
    (re.compile(r".*\.router\..*"), "router"),
    (re.compile(r"layers\.\d+\.(attn|conv)\..*"), "attention"),
    (re.compile(r"layers\.\d+\.(experts\.\d+\..*|ffn\.bias)"), "experts"),
    (re.compile(r"layers\.\d+\.shared.*"), "shared"),
    (re.compile(r"layers\.\d+\.ffn\..*"), "dense"),
    (re.compile(r"embed\..*"), "embedding"),
    (re.compile(r"head\..*"), "head"),
)


def _part(name: str) -> str:
    return next(part for pattern, part in _PARTS if pattern.fullmatch(name))
