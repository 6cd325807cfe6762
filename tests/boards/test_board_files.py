# SPDX-License-Identifier: Apache-2.0
"""Board descriptions: each rule refuses what breaks it, and says where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from colibri.boards import Board, Flash, linker_script, list_boards, load_board, mpu_regions, page_tables
from colibri.data import data_path
from colibri.errors import BoardError, UsageError

BOARDS = (
    *("linux-aarch64", "linux-riscv64", "linux-x86_64"),
    *("microbit", "mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547"),
    *("virt-aarch64", "virt-aarch64-a72", "virt-riscv32", "virt-riscv32f", "virt-riscv64"),
)


def edited(tmp_path: Path, old: str, new: str, board: str = "mps3-an547") -> Path:
    """A copy of a board's TOML with one text replaced."""
    text = (data_path("linker") / "boards" / f"{board}.toml").read_text()
    assert text.count(old) == 1, f"{old!r} must occur once"
    path = tmp_path / f"{board}.toml"
    path.write_text(text.replace(old, new))
    return path


def test_the_boards_are_there() -> None:
    assert set(BOARDS) <= set(list_boards())


@pytest.mark.parametrize("name", list_boards())
def test_every_board_loads(name: str) -> None:
    board = load_board(name)
    assert name == board.name
    assert all(source.is_file() for source in board.sources)


def test_a_board_of_ones_own_is_a_path(tmp_path: Path) -> None:
    board = load_board(edited(tmp_path, 'cpu = "Cortex-M55"', 'cpu = "Cortex-M85"'))
    assert board.cpu == "Cortex-M85"


def test_sources_may_lie_beside_the_toml(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text("")
    board = load_board(edited(tmp_path, '"boards/mps3-an547/board.c"', '"./mine.c"'))
    assert tmp_path / "mine.c" in board.sources


def test_what_probes_call_the_part(tmp_path: Path) -> None:
    assert load_board("microbit").flash == Flash(
        "nrf51", ("interface/cmsis-dap.cfg", "target/nrf51.cfg"), "nRF51822_xxAA"
    )
    assert load_board("mps3-an547").flash == Flash()
    assert load_board(edited(tmp_path, "[qemu]", '[flash]\npyocd = "x"\n[qemu]')).flash == Flash("x")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('pyocd = ""', "pyocd"),
        ('openocd = "a.cfg"', "openocd"),
        ("jlink = 1", "jlink"),
        ('jlink_interface = "USB"', "jlink_interface"),
        ('probe = "x"', "probe"),
    ],
)
def test_a_wrong_flash_table_names_its_field(tmp_path: Path, line: str, field: str) -> None:
    with pytest.raises(BoardError) as info:
        load_board(edited(tmp_path, "[qemu]", f"[flash]\n{line}\n[qemu]"))
    assert info.value.where.endswith(f": flash.{field}")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError) as info:
        load_board("mps3-an574")
    assert "mps2-an386" in info.value.expected
    assert info.value.hint == "did you mean mps3-an547?"


def test_a_missing_toml_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        load_board(tmp_path / "nothing.toml")


BAD = [
    ('name = "mps3-an547"', 'name = "other"', "name"),
    ('name = "mps3-an547"', "", "name"),
    ("word_bits = 32", "word_bits = 16", "word_bits"),
    ("word_bits = 32", "word_bits = true", "word_bits"),
    ('verified = "qemu"', 'verified = "yes"', "verified"),
    ('image = "linked"', 'image = "copied"', "image"),
    ('cpu = "Cortex-M55"', 'cpu = ""', "cpu"),
    ('cpu = "Cortex-M55"', "cpu = 55", "cpu"),
    ('"arch/mem.c"', '"arch/memory.c"', "sources"),
    ('"arch/mem.c"', '"./mine.c"', "sources"),
    ('kernels = "mve"', 'kernels = "avx"', "kernels"),
    ('linker_script = "cortex-m.ld"', 'linker_script = "none.ld"', "linker_script"),
    ('mpu = "v8m"', 'mpu = "mmp"', "mpu"),
    ('mpu = "v8m"', 'mpu = "pmp"', "regions.ddr.origin"),
    ('mpu = "v8m"', 'mpu = "mmu"', "regions.code.bytes"),
    ('mpu = "v8m"', 'mpu = "v7m"', "regions.ddr.origin"),
    ("bytes = 0x00080000", "bytes = 0x00080010", "regions.code.bytes"),
    ("origin = 0x28000000", "origin = 0x28000010", "regions.qspi.origin"),
    ("origin = 0x28000000", "origin = -1", "regions.qspi.origin"),
    ("origin = 0x28000000", "origin = 0x213ffc00", "regions.qspi.origin"),
    ("origin = 0x60000000, bytes = 0x40000000", "origin = 0xe0000000, bytes = 0x40000000", "regions.ddr.bytes"),
    ("origin = 0x28000000, ", "", "regions.qspi.origin"),
    ('bytes = 0x00080000, attributes = "rx"', 'bytes = 0x00080000, attributes = "x"', "regions.code.attributes"),
    ('bytes = 0x00080000, attributes = "rx"', 'bytes = 0x00080000, attributes = "rw"', "place.code"),
    ("qspi = {", "q-spi = {", "regions.q-spi"),
    ('code = "code"', 'code = "flash"', "place.code"),
    ('ram = "ram"', 'ram = "qspi"', "place.ram"),
    ('weights = ["qspi", "ddr"]', 'weights = ["ram"]', "place.weights"),
    ('weights = ["qspi", "ddr"]', "weights = []", "place.weights"),
    ('weights = ["qspi", "ddr"]', 'weights = "qspi"', "place.weights"),
    ("erase_sector_bytes = 4096", "erase_sector_bytes = 5000", "alignment.erase_sector_bytes"),
    ("generate = 1024", "generate = 1020", "stack.generate"),
    ("generate = 1024", "generate = 128", "stack.generate"),
    ("generate = 1024", "", "stack.generate"),
    ("[toolchain.llvm]", "[toolchain.iar]", "toolchain.iar"),
    ("[toolchain.gcc]", "[toolchain.llvm2]", "toolchain.llvm2"),
    ('machine = "mps3-an547"', "", "qemu.machine"),
    ('machine = "mps3-an547"', 'machine = "mps3-an547"\nram_mib = 0', "qemu.ram_mib"),
    ('machine = "mps3-an547"', 'machine = "mps3-an547"\nrom = 1', "qemu.rom"),
    ('cpu = "Cortex-M55"', 'cpu = "Cortex-M55"\nclock = 1', "clock"),
]


@pytest.mark.parametrize(("old", "new", "field"), BAD)
def test_a_bad_description_is_refused_by_field(tmp_path: Path, old: str, new: str, field: str) -> None:
    path = edited(tmp_path, old, new)
    with pytest.raises(BoardError) as info:
        load_board(path)
    assert f"{path}: {field}" == info.value.where
    assert info.value.expected
    assert info.value.got
    assert info.value.hint


def test_v7m_regions_are_powers_of_two(tmp_path: Path) -> None:
    with pytest.raises(BoardError) as info:
        load_board(edited(tmp_path, "bytes = 0x01000000", "bytes = 0x00c00000", "mps2-an386"))
    assert info.value.where.endswith("regions.psram.bytes")


def test_seven_mpu_regions_are_too_many(tmp_path: Path) -> None:
    more = "\n".join(f'm{i} = {{ origin = 0x3{i}000000, bytes = 1024, attributes = "r" }}' for i in range(2))
    with pytest.raises(BoardError) as info:
        load_board(edited(tmp_path, "[place]", f"{more}\n[place]"))
    assert info.value.where.endswith(": regions")


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe"])
def test_broken_toml_is_a_board_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(BoardError):
        load_board(tmp_path / "x.toml")


def test_a_mapped_board_has_no_regions(tmp_path: Path) -> None:
    path = edited(tmp_path, "[alignment]", '[place]\ncode = "code"\n[alignment]', "linux-x86_64")
    with pytest.raises(BoardError) as info:
        load_board(path)
    assert info.value.where.endswith(": place")


@pytest.mark.parametrize(("address", "region"), [(0x28000000, "qspi"), (0x287FFFC0, "qspi"), (0x90000000, "ddr")])
def test_a_weights_address_finds_its_region(address: int, region: str) -> None:
    assert region == load_board("mps3-an547").weights_region_at(address).name


@pytest.mark.parametrize("address", [0x0, 0x21000000, 0x28800000, 0xA0000000, 0x28000020])
def test_a_weights_address_elsewhere_is_a_usage_error(address: int) -> None:
    with pytest.raises(UsageError):
        load_board("mps3-an547").weights_region_at(address)


def test_a_mapped_board_takes_no_weights_address() -> None:
    with pytest.raises(UsageError):
        load_board("linux-x86_64").weights_region_at(0x1000)


def test_an_absent_toolchain_is_a_usage_error(tmp_path: Path) -> None:
    text = (data_path("linker") / "boards" / "mps3-an547.toml").read_text()
    head, tail = text.split("[toolchain.llvm]")
    (tmp_path / "mps3-an547.toml").write_text(head + tail[tail.index("[qemu]") :])
    board = load_board(tmp_path / "mps3-an547.toml")
    with pytest.raises(UsageError):
        board.toolchain("llvm")


def registers(board: Board) -> list[tuple[int, int]]:
    return [(m.base, m.attributes) for m in mpu_regions(board)]


def test_v7m_registers_match_the_architecture_manual() -> None:
    # RASR: XN 28, AP 26:24, TEX/S/C/B 21:16, SIZE 5:1, ENABLE 0
    assert registers(load_board("mps2-an386")) == [
        (0x00000000, 0b0_00_0_0_101_00_001_0_1_1 << 16 | 21 << 1 | 1),
        (0x20000000, 1 << 28 | 0b001 << 24 | 0b001011 << 16 | 21 << 1 | 1),
        (0x21000000, 1 << 28 | 0b101 << 24 | 0b001011 << 16 | 23 << 1 | 1),
        (0x1FFF8000, 1 << 28 | 14 << 1 | 1),
    ]


def test_v8m_registers_match_the_architecture_manual() -> None:
    # RBAR: base, AP 2:1, XN 0; RLAR: limit, EN 0
    assert registers(load_board("mps3-an547")) == [
        (0x00000000 | 0b10 << 1, 0x0007FFE0 | 1),
        (0x21000000 | 0b00 << 1 | 1, 0x213FFFE0 | 1),
        (0x28000000 | 0b10 << 1 | 1, 0x287FFFE0 | 1),
        (0x60000000 | 0b10 << 1 | 1, 0x9FFFFFE0 | 1),
    ]


def test_the_linker_script_names_the_region_of_the_address() -> None:
    board = load_board("mps3-an547")
    assert 'REGION_ALIAS("WEIGHTS", qspi)' in linker_script(board)
    script = linker_script(board, 0x90000000, "bench", stack_bytes=4096)
    assert 'REGION_ALIAS("WEIGHTS", ddr)' in script
    assert "__colibri_weights_address = 0x90000000;" in script
    assert "__colibri_stack_bytes = 4096;" in script
    assert "COLIBRI_MPU_REGIONS" not in script


def test_a_board_without_mpu_has_no_mpu_registers() -> None:
    board = load_board("microbit")
    assert registers(board) == []
    assert "no MPU" in linker_script(board)


def test_weights_beside_code_are_read_only_by_their_own_region() -> None:
    # the upper 2 MiB of SSRAM1: AP 0b101, XN
    assert (0x00200000, 1 << 28 | 0b101 << 24 | 0b001011 << 16 | 20 << 1 | 1) in registers(load_board("mps2-an385"))


@pytest.mark.parametrize(
    ("board", "old", "new", "field"),
    [
        ("virt-riscv64", "bytes = 0x02000000", "bytes = 0x01800000", "regions.flash.bytes"),
        ("virt-riscv64", "origin = 0x22000000", "origin = 0x23000000", "regions.flash.origin"),
        ("virt-riscv64", "bytes = 0x02000000", "bytes = 0x400", "regions.flash.bytes"),
        ("virt-riscv64", "origin = 0x90000000", "origin = 0x400000000", "regions.dram.bytes"),
        ("virt-aarch64", "bytes = 0x04000000", "bytes = 0x04001000", "regions.flash.bytes"),
        ("virt-aarch64", "origin = 0x90000000", "origin = 0x8000000000", "regions.dram.bytes"),
        ("virt-aarch64", 'code = "code"', 'code = "uart"', "place.code"),
        ("virt-aarch64", 'weights = ["flash", "dram"]', 'weights = ["uart"]', "place.weights"),
    ],
)
def test_what_pmp_and_page_tables_cannot_express_is_refused(
    tmp_path: Path, board: str, old: str, new: str, field: str
) -> None:
    with pytest.raises(BoardError) as info:
        load_board(edited(tmp_path, old, new, board))
    assert info.value.where.endswith(f": {field}")


def test_pmp_entries_match_the_privileged_architecture() -> None:
    # pmpaddr: base / 4 with as many ones at its end as log2 of the size says, less three; pmpcfg: L, NAPOT, XWR
    assert registers(load_board("virt-riscv64")) == [
        (0x80000000 >> 2 | (1 << 21 - 3) - 1, 0x9D),
        (0x81000000 >> 2 | (1 << 24 - 3) - 1, 0x9B),
        (0x22000000 >> 2 | (1 << 25 - 3) - 1, 0x99),
        (0x90000000 >> 2 | (1 << 27 - 3) - 1, 0x99),
        (0x80FF8000 >> 2 | (1 << 15 - 3) - 1, 0x98),
    ]


def translated(lines: list[str], at: int = 0x40010000) -> dict[int, int]:
    """Walk page tables as the linker would place them: virtual block -> descriptor."""
    words, here = {}, 0
    for line in lines:
        if match := re.match(r"\. = __colibri_page_tables \+ (0x[0-9a-f]+);", line):
            here = int(match[1], 16)
        elif match := re.match(r"QUAD\((__colibri_page_tables \+ )?(0x[0-9a-f]+)( \+ 3)?\)", line):
            words[here] = (at if match[1] else 0) + int(match[2], 16) + (3 if match[3] else 0)
            here += 8
    blocks = {}
    for gib in range(512):
        table = words.get(8 * gib, 0)
        if table & 3 == 3:
            for i in range(512):
                word = words.get(table - 3 - at + 8 * i, 0)
                if word & 3 == 1:
                    blocks[(gib << 30) + (i << 21)] = word
    return blocks


def test_page_tables_map_each_region_and_nothing_else() -> None:
    board = load_board("virt-aarch64")
    blocks = translated(page_tables(board))
    assert set(blocks) == {a for r in board.regions for a in range(r.origin, r.end, 1 << 21)}
    for address, word in blocks.items():
        (region,) = (r for r in board.regions if address in r)
        assert word & 0xFFFF_FFE0_0000 == address
        read_only, never_execute, device = word >> 7 & 1, word >> 53 & 1, word >> 2 & 7
        assert (read_only, never_execute, device) == (
            region.attributes in ("r", "rx"),
            region.attributes != "rx",
            region.attributes == "io",
        )
        assert word >> 10 & 1, "the access flag"
