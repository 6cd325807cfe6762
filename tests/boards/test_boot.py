# SPDX-License-Identifier: Apache-2.0
"""Each board boots, echoes, and says so when something goes wrong."""

from __future__ import annotations

import os
import platform
import re
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from echo_build import WEIGHTS, LinkError, build_echo
from elftools.elf.elffile import ELFFile

from colibri.boards import load_board
from colibri.errors import NoVerdict, ToolError, UsageError
from colibri_sim.qemu.frames import END, Frame, FrameDecoder, encode
from colibri_sim.qemu.machine import console_command, linux_command, simulator_command
from colibri_sim.qemu.runner import TargetFault, run
from colibri_sim.qemu.symbols import address_of

pytestmark = pytest.mark.qemu

EchoBuilder = Callable[..., Path]
PROTECTED_ARM = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547")
ARM = (*PROTECTED_ARM, "microbit")  # the latter has no MPU
RISCV = ("virt-riscv32", "virt-riscv32f", "virt-riscv64")
AARCH64 = ("virt-aarch64", "virt-aarch64-a72")
LINUX = ("linux-x86_64", "linux-aarch64", "linux-riscv64")
BARE = (*ARM, *RISCV, *AARCH64)
BOARDS = (*BARE, *LINUX)
PROTECTED = tuple(board for board in BOARDS if board != "microbit")
TOOLCHAINS = ("gcc", "llvm")
GCC_ALWAYS = ("gcc", pytest.param("llvm", marks=pytest.mark.slow))
TIMEOUT_S = 60.0


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def answers(board: str, elf: Path, *requests: bytes, timeout_s: float = TIMEOUT_S) -> list[Frame]:
    image = elf.with_name("weights.bin") if board.startswith("linux") else None
    return list(run(load_board(board), elf, image, b"".join(requests), timeout_s))


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("board", BOARDS)
def test_it_boots_and_echoes(echo: EchoBuilder, board: str, toolchain: str) -> None:
    data = bytes(range(256))
    got = answers(board, echo(board, toolchain), encode("e", data), encode("e"), END)
    assert [Frame("e", data), Frame("e", b"")] == got


@pytest.mark.parametrize(
    ("board", "address"),
    [
        *((board, None) for board in BOARDS),
        ("mps2-an385", 0x00200000),
        *((board, 0x90000000) for board in ("mps3-an547", *RISCV, *AARCH64)),
    ],
)
def test_it_reads_the_whole_image(echo: EchoBuilder, board: str, address: int | None) -> None:
    elf = echo(board, address=address)
    assert [Frame("w", u32(zlib.crc32(WEIGHTS)))] == answers(board, elf, encode("w"), END)


@pytest.mark.parametrize("board", BARE)
def test_weights_lie_where_they_are_loaded(echo: EchoBuilder, board: str) -> None:
    with echo(board).open("rb") as file:
        elf = ELFFile(file)
        region = load_board(board).default_weights_region
        assert region is not None
        segment = next(s for s in elf.iter_segments("PT_LOAD") if s["p_vaddr"] == region.origin)
        assert (region.origin, WEIGHTS) == (segment["p_paddr"], segment.data())
        assert not segment["p_flags"] & 2  # PF_W


@pytest.mark.parametrize("toolchain", GCC_ALWAYS)
@pytest.mark.parametrize("opt", ["0", "2"])
@pytest.mark.parametrize("board", PROTECTED)
def test_a_write_to_the_weights_faults_where_it_happens(
    echo: EchoBuilder, board: str, opt: str, toolchain: str
) -> None:
    elf = echo(board, toolchain, opt=opt)
    with pytest.raises(TargetFault) as info:
        answers(board, elf, encode("p"))  # in the middle of a frame
    report = info.value.report
    start = address_of(elf, "echo_fault_here")
    assert start <= report.pc < start + 32
    assert "echo_fault_here" in info.value.got
    assert "pc 0x" in info.value.hint
    region = load_board(board).default_weights_region
    if board in ARM:
        assert region is not None
        assert (4, 0x82, region.origin + 64) == (report.kind, report.status, report.address)
    elif board in RISCV:  # mcause 7: store access fault
        assert region is not None
        assert (7, region.origin + 64) == (report.kind, report.address)
    elif board in AARCH64:  # ESR: data abort from the same level, a write, permission fault at level 2
        assert region is not None
        assert (0x25, region.origin + 64) == (report.kind, report.address)
        assert (report.status >> 26, report.status >> 6 & 1, report.status & 0x3F) == (0x25, 1, 0x0E)
    else:
        assert report.kind == signal.SIGSEGV
        assert report.address % 4096 == 64


@pytest.mark.parametrize("address", [0x90000040, 0x97FFFF00])
@pytest.mark.parametrize("board", [*RISCV, *AARCH64])
def test_every_weights_region_is_read_only(echo: EchoBuilder, board: str, address: int) -> None:
    with pytest.raises(TargetFault) as info:
        answers(board, echo(board), encode("f", u32(address)))
    assert info.value.report.address == address


@pytest.mark.parametrize("offset", [0, 0x400, 0x1FFF00])
@pytest.mark.parametrize("board", [*RISCV, *AARCH64])
def test_code_cannot_be_written(echo: EchoBuilder, board: str, offset: int) -> None:
    code = load_board(board).code_region
    assert code is not None
    with pytest.raises(TargetFault) as info:
        answers(board, echo(board), encode("f", u32(code.origin + offset)))
    assert info.value.report.address == code.origin + offset


@pytest.mark.parametrize("address", [0x0, 0x08000000, 0x09200000, 0x40400000, 0xC0000000])
@pytest.mark.parametrize("board", AARCH64)
def test_an_address_in_no_region_has_no_translation(echo: EchoBuilder, board: str, address: int) -> None:
    with pytest.raises(TargetFault) as info:
        answers(board, echo(board), encode("f", u32(address)))
    assert (0x25, address) == (info.value.report.kind, info.value.report.address)
    assert info.value.report.status & 0x3C == 0x04  # translation fault


def test_a_second_weights_region_is_protected_too(echo: EchoBuilder) -> None:
    with pytest.raises(TargetFault) as info:
        answers("mps2-an385", echo("mps2-an385", address=0x00200000), encode("p"))
    assert (info.value.report.kind, info.value.report.address) == (4, 0x00200040)


def test_without_an_mpu_the_flash_ignores_a_store(echo: EchoBuilder) -> None:
    board = load_board("microbit")
    region = board.default_weights_region
    assert board.mpu == "none"
    assert region is not None
    got = answers("microbit", echo("microbit"), encode("f", u32(region.origin + 64)), encode("w"), END)
    assert [Frame("w", u32(zlib.crc32(WEIGHTS)))] == got


@pytest.mark.parametrize("board", PROTECTED_ARM)
@pytest.mark.parametrize(("offset", "kind"), [(0, 4), (0x400, 4), (None, 5)])
def test_writes_to_code_and_to_nowhere_fault(echo: EchoBuilder, board: str, offset: int | None, kind: int) -> None:
    code = load_board(board).code_region
    assert code is not None
    address = 0x5FFFFFF0 if offset is None else code.origin + offset
    with pytest.raises(TargetFault) as info:
        answers(board, echo(board), encode("f", u32(address)))
    assert (kind, address) == (info.value.report.kind, info.value.report.address)


@pytest.mark.parametrize("board", [board for board in BARE if board != "microbit"])
def test_ram_cannot_be_executed(echo: EchoBuilder, board: str) -> None:
    with pytest.raises(TargetFault) as info:
        answers(board, echo(board), encode("j", u32(1)))
    ram = load_board(board).ram_region
    assert ram is not None
    assert info.value.report.pc in ram


@pytest.mark.parametrize("opt", ["0", "2"])
@pytest.mark.parametrize("board", BOARDS)
def test_a_stack_overflow_is_caught_and_named(echo: EchoBuilder, board: str, opt: str) -> None:
    with pytest.raises(TargetFault) as info:
        answers(board, echo(board, opt=opt), encode("s"))
    if board in ARM:
        assert info.value.report.pc == 0
        # CFSR: STKOF of the stack limit register; MSTKERR and DACCVIOL of the guard; STKERR, which ARMv6-M has from us
        expected = {"v8m": 1 << 20, "v7m": 1 << 4 | 1 << 1, "none": 1 << 12}[load_board(board).mpu]
        assert info.value.report.status & expected == expected
        assert "stack overflow" in info.value.hint
        assert "stack has overflowed" in info.value.got
        return
    assert "echo_recurse" in info.value.got
    if board not in LINUX:
        ram = load_board(board).ram_region
        assert ram is not None
        assert 0 < ram.origin - info.value.report.address < 4096
        assert "stack overflow" in info.value.hint


@pytest.mark.parametrize("board", BOARDS)
def test_a_hang_is_no_verdict(echo: EchoBuilder, board: str) -> None:
    start = time.monotonic()
    with pytest.raises(NoVerdict) as info:
        answers(board, echo(board), encode("e"), encode("h"), timeout_s=1.5)
    assert time.monotonic() - start < 10
    assert "end within 1.5 s" in info.value.expected
    assert "1 frames" in info.value.got


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize(
    ("request_", "got"),
    [
        (encode("x", u32(7)), "status 7"),
        (encode("?"), "status 12"),
        (b"", "status 13"),
        (b"garbage", "status 13"),
        (encode("e", b"abc")[:-1] + b"\0", "status 11"),
        (encode("t"), "ends inside a frame"),
        (encode("g"), "starts no frame"),
        (encode("r") + END, "wrong CRC"),
    ],
)
def test_every_other_end_is_no_verdict(echo: EchoBuilder, board: str, request_: bytes, got: str) -> None:
    with pytest.raises(NoVerdict) as info:
        answers(board, echo(board), request_)
    assert got in info.value.got


@pytest.mark.parametrize("board", BOARDS)
def test_noise_before_a_request_is_skipped(echo: EchoBuilder, board: str) -> None:
    assert [Frame("e", b"x")] == answers(board, echo(board), b"\0CBCB noise", encode("e", b"x"), END)


@pytest.mark.parametrize("board", BOARDS)
def test_frames_are_yielded_before_the_program_ends(echo: EchoBuilder, board: str) -> None:
    frames = run(load_board(board), echo(board), None, encode("e", b"x") + encode("h"), TIMEOUT_S)
    assert Frame("e", b"x") == next(frames)
    frames.close()  # type: ignore[attr-defined]


def test_a_dying_simulator_is_no_verdict(echo: EchoBuilder, tmp_path: Path) -> None:
    broken = tmp_path / "broken.elf"
    broken.write_bytes(echo("mps2-an386").read_bytes()[:100])
    with pytest.raises(NoVerdict) as info:
        answers("mps2-an386", broken, END, timeout_s=5.0)
    assert info.value.hint


def test_a_missing_simulator_names_its_package(echo: EchoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = echo("mps2-an386")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolError, match="qemu-system-arm") as info:
        answers("mps2-an386", elf, END)
    assert info.value.hint == "apt-get install --no-install-recommends qemu-system-arm"


def test_a_missing_elf_is_a_tool_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError):
        answers("linux-x86_64", tmp_path / "none.elf", END)


def test_a_board_without_a_machine_has_no_simulator(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        simulator_command(load_board("linux-x86_64"), tmp_path / "x.elf")


# A shell's background job, and so its children, ignore SIGINT.
SCRIPT = """
import signal
import sys
from pathlib import Path
from colibri.boards import load_board
from colibri_sim.qemu.frames import encode
from colibri_sim.qemu.runner import run
signal.signal(signal.SIGINT, signal.default_int_handler)
for frame in run(load_board(sys.argv[1]), Path(sys.argv[2]), None, encode("e", b"x") + encode("h"), 60):
    print(frame.type, flush=True)
"""


@pytest.mark.parametrize("board", BOARDS)
def test_sigint_leaves_nothing_behind(echo: EchoBuilder, board: str, tmp_path: Path) -> None:
    elf = echo(board)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT, board, str(elf)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"e\n"
        assert len(running(elf)) == 1
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert not running(elf)
    assert not list(tmp_path.iterdir())


def running(elf: Path) -> list[str]:
    """Command lines of simulators, or of the ELF itself, that run `elf`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode().split("\0")
        except OSError:
            continue
        if str(elf) in words and "-c" not in words:
            found.append(" ".join(words))
    return found


SEMIHOSTING = {
    "arm-m": b"\xab\xbe",  # bkpt 0xab
    "riscv": struct.pack("<III", 0x01F01013, 0x00100073, 0x40705013),  # slli x0, x0, 31; ebreak; srai x0, x0, 7
    "aarch64": struct.pack("<I", 0xD45E0000),  # hlt 0xf000
}


@pytest.mark.parametrize("toolchain", GCC_ALWAYS)
@pytest.mark.parametrize("board", BARE)
def test_a_hardware_build_has_no_semihosting(echo: EchoBuilder, board: str, toolchain: str) -> None:
    trap = SEMIHOSTING[load_board(board).arch]
    for simulator, expected in ((True, 1), (False, 0)):
        with echo(board, toolchain, simulator=simulator).open("rb") as file:
            section = ELFFile(file).get_section_by_name(".text")
            assert section is not None
            text = section.data()
        assert expected == sum(text[i : i + len(trap)] == trap for i in range(0, len(text), 2))


@pytest.mark.parametrize("board", BARE)
def test_a_hardware_build_talks_over_its_uart(echo: EchoBuilder, board: str) -> None:
    command = console_command(load_board(board), echo(board, simulator=False))
    result = subprocess.run(
        command,
        input=encode("e", b"over the wire") + encode("w") + END,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    decoder = FrameDecoder()
    got = decoder.feed(result.stdout)
    decoder.finish()
    assert [Frame("e", b"over the wire"), Frame("w", u32(zlib.crc32(WEIGHTS)))] == got


@pytest.mark.parametrize("board", BARE)
def test_the_counter_counts_instructions_under_icount(echo: EchoBuilder, board: str) -> None:
    ticks = {}
    for n_rounds in (10_000, 20_000):
        request = encode("c", u32(n_rounds)) + END
        shift = 0 if board in RISCV else 6  # RISC-V counts nanoseconds of virtual time, 1 << shift an instruction
        (frame,) = run(load_board(board), echo(board), None, request, TIMEOUT_S, icount=shift)
        ticks[n_rounds] = struct.unpack("<Q", frame.payload[:8])[0]
    assert abs(ticks[20_000] - 2 * ticks[10_000]) < 100
    assert ticks[10_000] > 10_000


BAD_SOURCES = [
    ("static volatile int bad = 1;", r"initialised writable data \(\.data\)"),
    ("static volatile char bad[0x3000000];", "overflowed by"),
    ('__attribute__((section(".mine"))) static volatile int bad;', "orphan section"),
]


@pytest.mark.parametrize(("source", "message"), BAD_SOURCES)
@pytest.mark.parametrize("board", BARE)
def test_the_linker_refuses(tmp_path: Path, board: str, source: str, message: str) -> None:
    extra = tmp_path / "bad.c"
    write = "bad[0] = 2" if "[" in source.split("bad")[1] else "bad = 2"
    extra.write_text(f"void echo_extra(void);\n{source}\nvoid echo_extra(void)\n{{\n    {write};\n}}\n")
    with pytest.raises(LinkError) as info:
        build_echo(load_board(board), "gcc", tmp_path, extra=extra)
    assert re.search(message, str(info.value)), str(info.value)[-2000:]


@pytest.mark.parametrize("board", ["mps2-an386", "virt-riscv64", "virt-aarch64"])
def test_the_linker_refuses_a_tiny_stack(tmp_path: Path, board: str) -> None:
    with pytest.raises(LinkError, match="smaller than 256 bytes"):
        build_echo(load_board(board), "gcc", tmp_path, stack_bytes=128)


@pytest.mark.parametrize("machine", ["virtualization=on", "secure=on", "secure=on,virtualization=on"])
def test_aarch64_starts_at_every_exception_level(echo: EchoBuilder, tmp_path: Path, machine: str) -> None:
    board = load_board("virt-aarch64")
    assert board.qemu is not None
    higher = replace(board, qemu=replace(board.qemu, machine=f"virt,{machine}"))
    got = list(run(higher, echo("virt-aarch64"), None, encode("e", b"x") + END, TIMEOUT_S))
    assert [Frame("e", b"x")] == got
    with pytest.raises(TargetFault, match="data abort"):
        list(run(higher, echo("virt-aarch64"), None, encode("p"), TIMEOUT_S))


def test_another_core_than_the_host_runs_in_user_mode(tmp_path: Path) -> None:
    elf, image = tmp_path / "a.elf", tmp_path / "model.bin"
    for board in LINUX:
        command = linux_command(load_board(board), elf, image)
        native = board == f"linux-{platform.machine()}"
        assert [str(elf), str(image)] == command[0 if native else 1 :]
        counted = linux_command(load_board(board), elf, image, plugin="count.so")
        assert ["-plugin", "count.so", str(elf), str(image)] == counted[1:]
