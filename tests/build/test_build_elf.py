# SPDX-License-Identifier: Apache-2.0
"""The ELF against binutils' own output, and the figures that are promised of the demo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from intelhex import IntelHex

from colibri.audit.elf import Elf
from colibri.folder import Folder
from image.packs import DEMO, Packs

from . import binutils

pytestmark = pytest.mark.qemu
WEIGHTS = ".colibri_weights"
BOARDS = ("mps2-an386", "mps3-an547")


class Built:
    """One application of the demo at -O2."""

    def __init__(self, packs: Packs, board: str) -> None:
        self.folder: Folder = packs.folder(DEMO, "q8", board)
        self.path: Path = packs.built(self.folder, "generate", opt="2")
        self.elf = self.path / "firmware.elf"
        self.record: dict[str, Any] = json.loads((self.path / "build.json").read_text())
        self.plan = self.folder.manifest["plan"]


@pytest.fixture(scope="module", params=BOARDS)
def built(packs: Packs, request: pytest.FixtureRequest) -> Built:
    return Built(packs, request.param)


def test_sections_are_those_binutils_sees(built: Built) -> None:
    expected = {h.name: (h.bytes, h.vma, h.lma) for h in binutils.sections(built.elf).values()}
    got = {s.name: (s.bytes, s.address, s.load_address) for s in Elf.read(built.elf).sections}
    assert got == expected
    assert {name: n for name, n in binutils.sizes(built.elf).items() if name in got} == {
        name: n for name, (n, _, _) in got.items()
    }


def test_symbols_are_those_binutils_sees(built: Built) -> None:
    expected = binutils.symbols(built.elf)
    found = Elf.read(built.elf).symbols
    assert {name for name, (_, n) in expected.items()} == {s.name for s in found if s.bytes and s.section}
    for symbol in found:
        if symbol.bytes and symbol.section and sum(s.name == symbol.name for s in found) == 1:
            address = symbol.address & ~1 if symbol.kind == "FUNC" else symbol.address
            assert expected[symbol.name] == (address, symbol.bytes)


def test_everything_is_loaded_where_it_is_used_and_nothing_is_initialised(built: Built) -> None:
    found = binutils.sections(built.elf)
    assert all(header.lma == header.vma for header in found.values())
    assert not [name for name in found if name.startswith((".data", ".init_array", ".tdata", ".ctors"))]
    assert found[WEIGHTS].vma == built.folder.manifest["settings"]["weights_address"]
    assert found[WEIGHTS].bytes == built.folder.manifest["image"]["bytes"]


def test_measurements_are_those_of_size_and_nm(built: Built) -> None:
    sizes, symbols = binutils.sizes(built.elf), binutils.symbols(built.elf)
    state, logits = symbols["colibri_app_state"][1], symbols["colibri_app_logits"][1]
    assert built.record["measured"] == {
        "code": sizes[".vectors"] + sizes[".text"] + sizes[".rodata"],
        "statics": sizes[".bss"] - state - logits,
        "state": state,
        "logits": logits,
        "text": 0,
        "stack": sizes[".stack"] + sizes[".fault_stack"],
    }


def test_engine_bytes_of_the_map_are_those_of_the_symbols(packs: Packs, built: Built) -> None:
    """What the map has over the symbols is alignment, at most 3 bytes an input section, and unnamed constants."""
    library = packs.built(built.folder, "lib", opt="2") / "libcolibri.a"
    own = {name for kind, name in binutils.names(library) if kind in "TtRr"}
    in_elf = binutils.symbols(built.elf)
    by_symbols = sum(n for name, (_, n) in in_elf.items() if name in own)
    by_map = sum(built.record["engine"].values())
    print(f"{built.folder.board_name}: map {by_map}, symbols {by_symbols}")
    assert 0 <= by_map - by_symbols <= 3 * len(built.record["engine"]) + 64
    # input sections are named after their function or object
    for name, n_bytes in built.record["engine"].items():
        if name in in_elf:
            assert 0 <= n_bytes - in_elf[name][1] <= 3, name


def test_engine_of_the_demo_is_at_most_16_kib(built: Built) -> None:
    engine = sum(built.record["engine"].values())
    print(f"{built.folder.board_name} -O2: engine {engine}, code with start-up, console and application", end=" ")
    print(built.record["measured"]["code"])
    assert engine <= 16 * 1024
    assert built.record["measured"]["code"] <= 16 * 1024


def test_ram_of_the_demo_is_its_kv_cache_and_at_most_8_kib(built: Built) -> None:
    measured = built.record["measured"]
    ram = sum(measured[name] for name in ("statics", "state", "logits", "text", "stack"))
    cache = built.plan["ram"]["parts"]["kv_cache"]["bytes"]
    print(f"{built.folder.board_name}: RAM {ram} = KV cache {cache} + {ram - cache}")
    assert ram - cache <= 8 * 1024
    sizes = binutils.sizes(built.elf)
    assert ram == sizes[".bss"] + sizes[".stack"] + sizes[".fault_stack"]


def test_exact_parts_of_the_plan_are_exact_and_bounds_hold(built: Built) -> None:
    measured = built.record["measured"]
    parts = {name: part["bytes"] for name, part in built.plan["ram"]["parts"].items()}
    assert measured["state"] == parts["kv_cache"] + parts["activations"]
    assert measured["logits"] == parts["logits"]
    assert measured["statics"] <= parts["statics"]
    assert measured["stack"] <= parts["stack"]
    assert measured["code"] <= built.plan["flash"]["parts"]["code"]["bytes"]


def test_products_hold_what_the_elf_holds(packs: Packs, tmp_path: Path) -> None:
    path = packs.built(packs.folder("mixtral_odd", "q8", "mps3-an547"), "generate", opt="2")
    code, whole, elf = tmp_path / "code.bin", tmp_path / "all.hex", path / "firmware.elf"
    binutils.said("objcopy", "-O", "binary", "-R", WEIGHTS, elf, code)
    assert (path / "firmware.bin").read_bytes() == code.read_bytes()
    read = IntelHex(str(path / "firmware.hex"))
    assert read.tobinstr() == code.read_bytes()
    binutils.said("objcopy", "-O", "ihex", elf, whole)
    ours, theirs = IntelHex(str(path / "all.hex")), IntelHex(str(whole))
    assert ours.segments() == theirs.segments()
    assert all(ours.tobinstr(a, b - 1) == theirs.tobinstr(a, b - 1) for a, b in ours.segments())


def test_every_public_name_is_ours(packs: Packs, built: Built) -> None:
    library = packs.built(built.folder, "lib", opt="2") / "libcolibri.a"
    exported = {name for kind, name in binutils.names(library) if kind.isupper() and kind != "U"}
    assert exported
    assert all(name.startswith("colibri_") for name in exported)
    wanted = {name for kind, name in binutils.names(library) if kind == "U"} - exported
    assert wanted <= {"memcpy", "memset", "memcmp", "memmove", "colibri_port_cycles"}


def test_a_build_is_the_same_wherever_it_is_made(packs: Packs) -> None:
    folder = packs.folder("mixtral_odd", "q8", "mps3-an547")
    other = packs.private(folder)
    one, two = packs.built(folder, "generate", opt="2"), packs.built(other, "generate", opt="2")
    for name in ("firmware.elf", "firmware.bin", "all.hex", "build.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    assert str(packs.base).encode() not in (two / "firmware.elf").read_bytes()
