# SPDX-License-Identifier: Apache-2.0
"""colibri flash: the command each probe's program gets, and what happens when it is missing or fails. The programs are stubs."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.command import MIXTRAL, ROOT, Result, call, program, validate
from cli.conftest import Folders

pytestmark = pytest.mark.qemu  # for its cross compiler

BOARD = "mps2-an386"
PROGRAMS = {"pyocd": "pyocd", "openocd": "openocd", "jlink": "JLinkExe"}
PROBES = tuple(PROGRAMS)
TARGET = {"pyocd": "cortex_m", "openocd": "target/some chip.cfg", "jlink": "Cortex-M4"}


@pytest.fixture(scope="session")
def folder(packed: Folders, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its name needs quotes in a shell and in Tcl."""
    folder = tmp_path_factory.mktemp("flash") / "a {board} $x's"
    shutil.copytree(packed(BOARD), folder)
    assert call("build", folder, "--app", "verify", "--hardware").code == 0
    return folder


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Put a program of that name into PATH, first; returns where it writes its arguments, one a line, and its input."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    def make(probe: str, then: str = "exit 0") -> Path:
        log = tmp_path / "log"
        program(
            tmp_path / "bin",
            PROGRAMS[probe],
            f"pwd > '{log}'; printf '%s\\n' \"$@\" >> '{log}'; ls all.hex >> '{log}'; cat >> '{log}'\n{then}",
        )
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
        return log

    return make


def flash(folder: Path, probe: str, *args: object) -> Result:
    return call("flash", folder, "--probe", probe, "--app", "verify", "--target", TARGET[probe], *args)


EXPECTED = {
    "pyocd": ["flash", "--target", "cortex_m", "--format", "hex", "all.hex", "all.hex"],
    "openocd": ["-f", "target/some chip.cfg", "-c", "program all.hex verify; reset run; shutdown", "all.hex"],
    "jlink": [
        *("-device", "Cortex-M4", "-if", "SWD", "-speed", "4000", "-autoconnect", "1", "-NoGui", "1"),
        *("-ExitOnError", "1", "all.hex", "r", "h", "loadfile all.hex", "r", "g", "exit"),
    ],
}


@pytest.mark.parametrize("probe", PROBES)
def test_the_probe_is_run(folder: Path, stub: Callable[..., Path], probe: str) -> None:
    log = stub(probe)
    result = flash(folder, probe, "--json")
    assert result.code == 0, result.err
    validate(result.document, "flash")
    assert result.document["flashed"] is True
    assert [str(folder / "verify-gcc-hw"), *EXPECTED[probe]] == log.read_text().splitlines()


@pytest.mark.parametrize("probe", PROBES)
def test_a_dry_run_prints_a_line_that_does_the_same(folder: Path, stub: Callable[..., Path], probe: str) -> None:
    log = stub(probe)
    result = flash(folder, probe, "--dry-run")
    assert result.code == 0
    assert not log.exists()
    subprocess.run(["sh", "-c", result.out], check=True, stdin=subprocess.DEVNULL)
    assert [str(folder / "verify-gcc-hw"), *EXPECTED[probe]] == log.read_text().splitlines()
    document = flash(folder, probe, "--dry-run", "--json").document
    validate(document, "flash")
    assert document["flashed"] is False


@pytest.mark.parametrize("probe", PROBES)
def test_code_and_weights_can_go_apart(folder: Path, probe: str) -> None:
    for part, names in (("code", ["firmware.hex"]), ("separate", ["firmware.hex", "../model.hex"])):
        out = flash(folder, probe, "--dry-run", "--part", part).out
        assert "all.hex" not in out
        assert all(name in out for name in names)
    assert "firmware.hex" not in flash(folder, probe, "--dry-run", "--part", "weights").out


@pytest.mark.parametrize("probe", PROBES)
def test_a_missing_program_says_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch, probe: str) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    result = flash(folder, probe)
    assert result.code == 4
    error, hint = result.error_lines()
    assert error.startswith(PROGRAMS[probe])
    assert "install" in hint


@pytest.mark.parametrize("probe", PROBES)
def test_a_failing_program_is_no_verdict(folder: Path, stub: Callable[..., Path], probe: str) -> None:
    stub(probe, "echo no probe found >&2; exit 3")
    result = flash(folder, probe, "--json")
    assert result.code == 5
    validate(result.document, "error")
    assert "exit status 3" in result.error_lines()[0]
    assert "no probe found" in result.error_lines()[0]


def test_a_program_that_hangs_is_ended(folder: Path, stub: Callable[..., Path]) -> None:
    stub("pyocd", "sleep 60")
    start = time.monotonic()
    assert flash(folder, "pyocd", "--timeout", "1").code == 5
    assert time.monotonic() - start < 20


def test_who_does_not_read_its_input_is_no_bug(folder: Path, stub: Callable[..., Path], tmp_path: Path) -> None:
    stub("jlink")
    program(tmp_path / "bin", "JLinkExe", "exec <&-; exit 0")
    assert flash(folder, "jlink").code == 0


@pytest.mark.parametrize("probe", PROBES)
def test_a_part_that_nobody_names_is_asked_for(folder: Path, probe: str) -> None:
    result = call("flash", folder, "--probe", probe, "--app", "verify")
    assert result.code == 2
    assert "--target" in result.error_lines()[1]


def test_the_name_comes_from_the_boards_toml(packed: Folders, tmp_path: Path) -> None:
    """A board of one's own, with an OpenOCD configuration beside it."""
    text = (ROOT / "linker" / "boards" / f"{BOARD}.toml").read_text()
    mine = tmp_path / "mine.toml"
    (tmp_path / "probe.cfg").touch()
    flash_table = (
        '[flash]\npyocd = "p1"\nopenocd = ["probe.cfg", "target/t.cfg"]\njlink = "J1"\njlink_interface = "JTAG"\n'
    )
    mine.write_text(text.replace(f'name = "{BOARD}"', 'name = "mine"') + "\n" + flash_table)
    out = tmp_path / "packed"
    assert call("pack", MIXTRAL, "-b", mine, "-o", out).code == 0
    assert call("build", out, "--hardware").code == 0
    lines = {p: call("flash", out, "--probe", p, "--dry-run").out for p in PROBES}
    assert "--target p1" in lines["pyocd"]
    assert f"-f {tmp_path / 'probe.cfg'} -f target/t.cfg" in lines["openocd"]
    assert "-device J1 -if JTAG -jtagconf -1,-1" in lines["jlink"]


def test_what_was_not_built_for_hardware_is_not_flashed(packed: Folders) -> None:
    result = call("flash", packed(BOARD), "--probe", "pyocd", "--target", "x")
    assert result.code == 2
    assert "--hardware" in result.error_lines()[1]
