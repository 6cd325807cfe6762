# SPDX-License-Identifier: Apache-2.0
"""--serial: the same verdict over a UART as from the simulator; over a bad line none, and never a false one."""

from __future__ import annotations

import json
import os
import pty
import shutil
import struct
import time
import tty
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.command import MIXTRAL, call, validate
from cli.conftest import Folders
from cli.serial_board import Harm, serial_board
from colibri.cli.options import SerialType
from colibri_sim.serial import SerialPort
from sampled import sampled

pytestmark = pytest.mark.qemu

ARM, RISCV = "mps2-an386", "virt-riscv32"
Flashed = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def hardware(packed: Folders, tmp_path_factory: pytest.TempPathFactory) -> Flashed:
    """A folder with the hardware build of an application for a board."""
    folders: dict[tuple[str, str], Path] = {}

    def build(board: str, app: str) -> Path:
        if (board, app) not in folders:
            folder = tmp_path_factory.mktemp(app) / "packed"
            shutil.copytree(packed(board), folder)
            result = call("build", folder, "--app", app, "--hardware")
            assert result.code == 0, result.err
            folders[board, app] = folder
        return folders[board, app]

    return build


def elf(folder: Path, app: str) -> Path:
    return folder / f"{app}-gcc-hw" / "firmware.elf"


def verify(folder: Path, port: str, timeout: float = 120) -> tuple[int, dict[str, object]]:
    result = call("verify", folder, "--serial", port, "--timeout", timeout, "--json")
    document = result.document
    validate(document, "verify")
    (row,) = document["results"]
    return result.code, row


@pytest.mark.parametrize("board", [ARM, RISCV])
def test_the_verdict_is_exact_and_the_board_ready_for_the_next(hardware: Flashed, board: str) -> None:
    """Twice: 'E' resets the core."""
    folder = hardware(board, "verify")
    with serial_board(board, elf(folder, "verify")) as port:
        for _ in range(2):
            code, row = verify(folder, f"{port}@115200")
            assert (code, row["status"], row["bit_exact"]) == (0, "exact", True), row
            assert row["positions"] == sum(
                len(p["ids"]) for p in json.loads((folder / "vectors.json").read_text())["prompts"]
            )


def test_a_difference_is_named_as_from_the_simulator(hardware: Flashed, tmp_path: Path) -> None:
    """Vectors of another answer stand for a core that computes another one."""
    folder = tmp_path / "packed"
    shutil.copytree(hardware(RISCV, "verify"), folder)
    vectors = json.loads((folder / "vectors.json").read_text())
    vectors["prompts"][1]["trace_crc32"][2][3] ^= 1
    (folder / "vectors.json").write_text(json.dumps(vectors))
    with serial_board(RISCV, elf(folder, "verify")) as port:
        code, row = verify(folder, port)
    assert (code, row["status"]) == (1, "differs"), row
    place = row["first_difference"]
    assert isinstance(place, dict)
    assert (place["prompt"], place["position"]) == (1, 2)


DAMAGE = {
    "a byte of a trace lost": Harm(b"CBT\0", "drop", 20),
    "a byte of a trace changed": Harm(b"CBT\0", "change", 20),
    "a byte of logits doubled": Harm(b"CBL\0", "add", 40, nth=3),
    "a whole header lost": Harm(b"CBT\0", "drop", 0, 4, nth=2),
    "a length made huge": Harm(b"CBT\0", "change", 3),
    "a length made longer": Harm(b"CBL\0", "change", 1),
    "a magic changed": Harm(b"CBT\0", "change", 400),
    "many bytes lost": Harm(b"CBL\0", "drop", 100, 1000),
    "the last byte of a status lost": Harm(b"CBS\0", "drop", 11, nth=2),
    "everything lost from some byte on": Harm(b"CBL\0", "drop", 7, 1 << 40),
}


@pytest.mark.parametrize("name", sampled((name,) for name in DAMAGE))
def test_a_line_that_harms_the_answer_gives_no_verdict(hardware: Flashed, name: str) -> None:
    folder = hardware(RISCV, "verify")
    start = time.monotonic()
    with serial_board(RISCV, elf(folder, "verify"), to_host=DAMAGE[name]) as port:
        code, row = verify(folder, port, 12)
    assert (code, row["status"], row["bit_exact"]) == (5, "no_verdict", None), row
    assert time.monotonic() - start < 40
    assert DAMAGE[name].done


REQUEST_DAMAGE = {
    "a byte lost": Harm(b"CBV\0", "drop", 30),
    "a byte changed": Harm(b"CBV\0", "change", 30, nth=2),
    "a type changed": Harm(b"CB", "change", 0, nth=3),
    "a length made huge": Harm(b"CBV\0", "change", 3),
    "a byte doubled": Harm(b"CBV\0", "add", 12),
}


@pytest.mark.parametrize("name", sampled((name,) for name in REQUEST_DAMAGE))
def test_a_line_that_harms_the_request_gives_no_verdict(hardware: Flashed, name: str) -> None:
    folder = hardware(RISCV, "verify")
    harm = REQUEST_DAMAGE[name]
    with serial_board(RISCV, elf(folder, "verify"), to_board=harm) as port:
        code, row = verify(folder, port, 12)
    assert harm.done
    assert (code, row["status"], row["bit_exact"]) == (5, "no_verdict", None), row


def test_the_session_after_a_broken_one_is_whole(hardware: Flashed) -> None:
    """The core was left in the middle of an answer; what it still sends is not taken for the next one's."""
    folder = hardware(RISCV, "verify")
    with serial_board(RISCV, elf(folder, "verify"), to_host=Harm(b"CBT\0", "change", 20)) as port:
        assert verify(folder, port, 60)[0] == 5
        assert verify(folder, port, 120)[0] == 0


def test_noise_before_the_first_answer_is_passed_over(hardware: Flashed) -> None:
    folder = hardware(RISCV, "verify")
    harm = Harm(b"C", "add", 0, 3)
    with serial_board(RISCV, elf(folder, "verify"), to_host=harm) as port:
        assert verify(folder, port)[0] == 0
    assert harm.done == 3


def test_late_answers_to_the_first_question_are_not_the_requests(hardware: Flashed) -> None:
    """The board was slow to start: it answers the question as often as it was put."""
    folder = hardware(RISCV, "verify")
    waits = [(1, 2.5), (17, 1.0)]  # before that byte: an answer has 16
    n_bytes = 0

    def slow(data: bytes) -> bytes:
        nonlocal n_bytes
        n_bytes += len(data)
        while waits and n_bytes >= waits[0][0]:
            time.sleep(waits.pop(0)[1])
        return data

    with serial_board(RISCV, elf(folder, "verify"), to_host=slow) as port:
        code, row = verify(folder, port)
    assert not waits
    assert (code, row["status"]) == (0, "exact"), row


def test_bench_counts_cycles_and_calls_them_so(hardware: Flashed) -> None:
    folder = hardware(RISCV, "bench")
    with serial_board(RISCV, elf(folder, "bench")) as port:
        result = call("bench", folder, "--serial", port, "--json")
        text = call("bench", folder, "--serial", port).out
    assert result.code == 0, result.err
    validate(result.document, "bench")
    (row,) = result.document["results"]
    assert "instructions_per_token" not in row
    assert all(count > 0 for count in row["cycles_per_token"].values())
    assert list(row["cycles_per_token"]) == [str(i) for i in range(len(row["cycles_per_token"]))]
    assert "cycles per token" in text
    assert "instructions" not in text


def test_a_counter_that_stands_still_is_no_result(hardware: Flashed) -> None:
    """As QEMU's DWT does."""
    folder = hardware(ARM, "bench")
    with serial_board(ARM, elf(folder, "bench")) as port:
        result = call("bench", folder, "--serial", port)
    assert result.code == 5
    assert "stands still" in result.error_lines()[0]


def test_a_damaged_count_is_no_result(hardware: Flashed) -> None:
    folder = hardware(RISCV, "bench")
    for harm in (Harm(b"CBC\0", "change", 9, nth=4), Harm(b"CBC\0", "drop", 0, 24)):
        with serial_board(RISCV, elf(folder, "bench"), to_host=harm) as port:
            assert call("bench", folder, "--serial", port, "--timeout", 12).code == 5


def test_another_application_on_the_board_is_no_verdict(hardware: Flashed) -> None:
    bench, folder = hardware(RISCV, "bench"), hardware(RISCV, "verify")
    with serial_board(RISCV, elf(bench, "bench")) as port:
        code, row = verify(folder, port)
    assert (code, row["status"]) == (5, "no_verdict")


def test_a_silent_port_is_no_verdict_in_time(hardware: Flashed) -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    start = time.monotonic()
    try:
        code, row = verify(hardware(RISCV, "verify"), os.ttyname(slave), 3)
    finally:
        os.close(master)
        os.close(slave)
    assert (code, row["status"]) == (5, "no_verdict")
    assert 2 < time.monotonic() - start < 10


def test_what_is_no_port_or_no_build_is_said(hardware: Flashed, packed: Folders, tmp_path: Path) -> None:
    folder = hardware(RISCV, "verify")
    (tmp_path / "file").touch()
    for port in (tmp_path / "none", tmp_path / "file"):
        result = call("verify", folder, "--serial", port)
        assert result.code == 2
        assert "a serial port" in result.error_lines()[0]
    assert call("verify", folder, "--serial", "x@7").code == 2
    assert call("verify", MIXTRAL, "--serial", "x").code == 2
    assert call("verify", folder, "--serial", "x", "--toolchain", "all").code == 2
    unbuilt = call("verify", packed(RISCV), "--serial", "x")
    assert unbuilt.code == 2
    assert "--hardware" in unbuilt.error_lines()[1]
    mapped = call("build", packed("linux-x86_64"), "--app", "verify", "--hardware")
    assert mapped.code == 2
    assert "UART" in mapped.error_lines()[0]


@pytest.mark.parametrize(
    ("text", "path", "baud"),
    [("/dev/x", "/dev/x", 115200), ("/dev/x@9600", "/dev/x", 9600), ("/dev/a@b", "/dev/a@b", 115200)],
)
def test_a_port_and_its_rate(text: str, path: str, baud: int) -> None:
    assert SerialType().convert(text, None, None) == SerialPort(Path(path), baud)


def test_a_fault_is_named(hardware: Flashed, tmp_path: Path) -> None:
    """A report comes in the middle of a trace."""
    folder = hardware(RISCV, "verify")
    body = b"CBX\0" + struct.pack("<IIIII", 16, 5, 0x80000000, 5, 0x1234)
    report = body + struct.pack("<I", zlib.crc32(body))
    harm = Harm(b"CBT\0", "drop", 30, 1 << 40)

    def faulting(data: bytes) -> bytes:
        before = harm.done
        kept = harm(data)
        return kept + report if harm.done and not before else kept

    with serial_board(RISCV, elf(folder, "verify"), to_host=faulting) as port:
        code, row = verify(folder, port, 60)
    assert code == 5
    assert "load access fault" in str(row["reason"])
