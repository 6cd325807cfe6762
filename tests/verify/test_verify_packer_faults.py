# SPDX-License-Identifier: Apache-2.0
"""A bit or a tensor in the wrong place in model.bin, every checksum right: `verify` names what it first changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colibri.folder import Folder, read_folder
from colibri.image.placement import ImageLayout
from colibri.image.writer import write_image
from colibri.quantise import Stored
from colibri_sim.golden import GoldenModel
from image.packs import IDS, Packs, checkpoint, settings

from .mutants import predicted, resealed, verdict, weights


def rewritten(folder: Folder, image: bytes) -> Folder:
    """The folder with another model.bin, its hash in the manifest put right."""
    (folder.path / "model.bin").write_bytes(image)
    manifest = json.loads((folder.path / "manifest.json").read_text())
    manifest["image"]["sha256"] = hashlib.sha256(image).hexdigest()
    (folder.path / "manifest.json").write_text(json.dumps(manifest))
    return read_folder(folder.path)


def offset_of(folder: Folder, name: str) -> int:
    return int(next(t["offset"] for t in folder.manifest["tensors"] if t["name"] == name))


def flipped(name: str, row: int, col: int, bit: int) -> Callable[[Callable[[str], Stored], str], Stored]:
    """A golden model's weights with one bit of one int8 weight flipped."""

    def change(read: Callable[[str], Stored], wanted: str) -> Stored:
        stored = read(wanted)
        if wanted != name:
            return stored
        data = stored.data.copy()
        data.view(np.uint8)[row, col] ^= 1 << bit
        return replace(stored, data=data)

    return change


@pytest.mark.parametrize(
    ("name", "row", "col", "first"),
    [
        ("embed.weight", 5, 17, "embed"),
        ("layers.0.attn.k.weight", 3, 7, "k"),
        ("layers.1.attn.o.weight", 40, 1, "attn_out"),
        ("layers.0.experts.2.up.weight", 23, 9, "up"),
        ("layers.1.experts.1.down.weight", 2, 20, "down"),
        ("head.weight", 95, 47, "logits"),
    ],
)
def test_one_flipped_bit_of_one_weight(packs: Packs, name: str, row: int, col: int, first: str) -> None:
    folder = packs.private(packs.folder("mixtral", "q8"))
    image = bytearray((folder.path / "model.bin").read_bytes())
    cols = next(t["shape"][1] for t in folder.manifest["tensors"] if t["name"] == name)
    image[offset_of(folder, name) + row * -(-cols // 8) * 8 + col] ^= 1 << 6
    folder = rewritten(folder, resealed(image))
    expected = predicted(folder, weights(flipped(name, row, col, 6)))
    assert expected.tensor == first
    assert verdict(folder, packs.built(folder) / "firmware.elf").first_difference == expected


def test_a_flipped_bit_of_a_float_weight_and_of_a_scale(packs: Packs) -> None:
    for quant, part in (("f32", "data"), ("q8", "scales")):
        folder = packs.private(packs.folder("mixtral", quant))
        image = bytearray((folder.path / "model.bin").read_bytes())
        rows, cols = next(t["shape"] for t in folder.manifest["tensors"] if t["name"] == "layers.0.attn.q.weight")
        assert rows * cols % 16 == cols % 8 == 0
        image[offset_of(folder, "layers.0.attn.q.weight") + (rows * cols if part == "scales" else 0)] ^= 1

        def change(read: Callable[[str], Stored], wanted: str, part: str = part) -> Stored:
            stored = read(wanted)
            if wanted != "layers.0.attn.q.weight":
                return stored
            array = getattr(stored, part).copy()
            array.view(np.uint32)[0, 0] ^= 1
            return replace(stored, **{part: array})

        folder = rewritten(folder, resealed(image))
        expected = predicted(folder, weights(change))
        assert expected.tensor == "q"
        assert verdict(folder, packs.built(folder) / "firmware.elf").first_difference == expected


def test_a_flipped_bit_with_its_checksum_wrong_is_a_status(packs: Packs) -> None:
    """The engine refuses the image: COLIBRI_ERR_CRC of firmware/include/colibri/status.h, not a difference of numbers."""
    folder = packs.private(packs.folder("mixtral", "q8"))
    path = folder.path / "model.bin"
    image = bytearray(path.read_bytes())
    image[offset_of(folder, "head.weight")] ^= 1
    path.write_bytes(image)
    found = verdict(folder, packs.built(folder) / "firmware.elf").first_difference
    assert found is not None
    assert (found.position, found.tensor, found.expected_bits) == (0, "status", "0x00000000")
    assert int(str(found.got_bits), 16) >= 0x80000000


SWAPS = {
    "gate and up of one expert": ("layers.0.experts.1.gate.weight", "layers.0.experts.1.up.weight", "gate"),
    "two experts' down": ("layers.1.experts.0.down.weight", "layers.1.experts.3.down.weight", "down"),
    "k and v": ("layers.0.attn.k.weight", "layers.0.attn.v.weight", "k"),
    "the norms of a layer": ("layers.0.attn_norm.weight", "layers.0.ffn_norm.weight", "attn_norm"),
    "the routers of two layers": ("layers.0.router.weight", "layers.1.router.weight", "router"),
    "embedding and head": ("embed.weight", "head.weight", "embed"),
}


def swapped(layout: ImageLayout, one: str, other: str) -> ImageLayout:
    """The layout with two blocks of the same shape at each other's place."""
    names = {one: other, other: one}
    return replace(layout, blocks=tuple(replace(b, name=names.get(b.name, b.name)) for b in layout.blocks))


def exchanged(one: str, other: str) -> Callable[[GoldenModel], GoldenModel]:
    names = {one: other, other: one}
    return weights(lambda read, name: read(names.get(name, name)))


@pytest.mark.parametrize("name", SWAPS)
def test_two_tensors_at_each_others_place(packs: Packs, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    one, other, first = SWAPS[name]

    def misplaced(file: Any, model: Any, policy: Any, layout: ImageLayout, **others: Any) -> Any:
        return write_image(file, model, policy, swapped(layout, one, other), **others)

    monkeypatch.setattr("colibri.packing.write_image", misplaced)
    folder = packs.pack(checkpoint("mixtral"), settings("q8"))
    expected = predicted(folder, exchanged(one, other))
    assert expected.tensor == first
    assert verdict(folder, packs.built(folder) / "firmware.elf").first_difference == expected


def test_experts_of_a_layer_counted_from_the_second(packs: Packs, tmp_path: Path) -> None:
    """model_config.h of another order than the image: what the engine is compiled with is wrong, the image right."""
    from colibri.build.firmware import BuildOptions, build
    from colibri.cli.workflow import board_of

    folder = packs.private(packs.folder("mixtral", "q8"))
    path = folder.path / "model_config.h"
    lines = path.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "COLIBRI_LAYER_BLOCKS_AT" in line)
    stride = next(line.split(", ")[1].rstrip("u)") for line in lines if "COLIBRI_KIND_EXPERT_STRIDE" in line)
    lines[at] = f"{lines[at][:-1]} + ((i) == 0 ? {stride}u : 0u))"
    path.write_text("\n".join(lines) + "\n")

    def change(read: Callable[[str], Stored], name: str) -> Stored:
        if name.startswith("layers.0.experts."):
            index = int(name.split(".")[3])
            other = f"layers.0.experts.{index + 1}." if index < 3 else "layers.1.experts.0."
            return read(name.replace(f"layers.0.experts.{index}.", other))
        return read(name)

    elf = build(folder, board_of(folder), BuildOptions(app="verify")) / "firmware.elf"
    expected = predicted(folder, weights(change))
    assert expected.tensor == "gate"
    assert verdict(folder, elf).first_difference == expected


def test_without_the_checkpoint_the_place_is_still_named(packs: Packs) -> None:
    from colibri.cli import targets
    from colibri.cli.workflow import board_of
    from colibri_sim.verify import verify

    folder = packs.private(packs.folder("mixtral", "q8", ids=IDS))
    image = bytearray((folder.path / "model.bin").read_bytes())
    image[offset_of(folder, "layers.0.attn.k.weight")] ^= 64
    folder = rewritten(folder, resealed(image))
    elf = packs.built(folder) / "firmware.elf"
    run = lambda request: targets.frames(folder, board_of(folder), elf, request, 60.0)  # noqa: E731  # as the command does
    found = verify(run, folder.vectors(), None).first_difference
    assert found is not None
    assert str(found) == "prompt 0, position 0, layer 0, tensor k"
