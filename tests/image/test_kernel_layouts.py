# SPDX-License-Identifier: Apache-2.0
"""The registry of kernel layouts: one name for a kernel set, its folder, its layout and what boards say."""

from __future__ import annotations

import zlib

import pytest

from colibri.boards import KERNEL_SETS, list_boards, load_board
from colibri.errors import ImageError, UsageError
from colibri.folder import read_folder
from colibri.image.kernel_layouts import LAYOUTS, c_header, layout_of, layout_with_id
from colibri.image.reader import read_image

from .packs import ROOT, Packs

KERNELS = ROOT / "firmware" / "kernels"


def test_every_set_has_a_folder_a_layout_and_an_id_of_its_own() -> None:
    names = {layout.name for layout in LAYOUTS}
    assert names == set(KERNEL_SETS) == {path.parent.name for path in KERNELS.glob("*/table.h")}
    assert len({layout.id for layout in LAYOUTS}) == len(LAYOUTS)
    assert {"portable": 1, "armv7em": 2, "mve": 3, "armv7m": 4}.items() <= {
        layout.name: layout.id for layout in LAYOUTS
    }.items()
    for layout in LAYOUTS:
        assert layout_of(layout.name) is layout_with_id(layout.id) is layout


def test_a_core_runs_its_own_set_first_and_the_portable_one_last() -> None:
    for name, runs in KERNEL_SETS.items():
        assert (runs[0], runs[-1]) == (name, "portable")
        assert all(set(KERNEL_SETS[other]) <= set(runs) for other in runs)
    assert {load_board(board).kernels for board in list_boards()} == set(KERNEL_SETS)


def test_the_generated_header_is_fresh() -> None:
    assert (KERNELS / "layouts.h").read_text() == c_header()


def test_an_image_names_its_set(packs: Packs) -> None:
    for board, kernels, expected in (("mps2-an386", None, "armv7em"), ("mps2-an386", "portable", "portable")):
        folder = packs.folder("mixtral_odd", "q8", board, kernels=kernels)
        assert (folder.kernels, folder.manifest["settings"]["kernels"]) == (expected, expected)
        assert read_image(folder.path / "model.bin").kernels == expected


def test_hashes_of_tensors_do_not_depend_on_the_layout(packs: Packs) -> None:
    by_set = [packs.folder("mixtral_odd", "q8", "mps2-an386", kernels=k).manifest for k in KERNEL_SETS["armv7em"]]
    assert len({str([t["sha256"] for t in manifest["tensors"]]) for manifest in by_set}) == 1
    assert len({manifest["config_hash"] for manifest in by_set}) == len(by_set)


def test_a_set_that_the_core_does_not_run_is_refused(packs: Packs) -> None:
    with pytest.raises(UsageError) as caught:
        packs.folder("mixtral_odd", "q8", "linux-x86_64", kernels="armv7em")
    assert (caught.value.where, caught.value.got) == ("--kernels armv7em", "armv7em")
    assert "linux-x86_64 runs: portable" in caught.value.expected


def test_an_image_of_an_unknown_layout_is_refused(packs: Packs) -> None:
    path = packs.private(packs.folder("mixtral_odd")).path / "model.bin"
    data = bytearray(path.read_bytes())
    data[40:44] = (99).to_bytes(4, "little")
    data[252:256] = zlib.crc32(data[:252]).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(ImageError, match="kernel_layout"):
        read_image(path)
    assert read_folder(path.parent)
