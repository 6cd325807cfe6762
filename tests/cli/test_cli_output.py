# SPDX-License-Identifier: Apache-2.0
"""An output folder is complete or as it was, whatever happens to the disk, to the process or to the reader."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.command import (
    MAIN,
    MIXTRAL,
    ROOT,
    alive,
    call,
    contents,
    finish,
    in_session,
    process,
    program,
    validate,
    wait_for,
)
from cli.conftest import Folders
from colibri.cli.main import COMMANDS, pack_main
from colibri.errors import OutputError
from colibri.output import replaced_folder

LINUX, AN547 = "linux-x86_64", "mps3-an547"
PACK = ("pack", MIXTRAL, "-b", LINUX, "-o")
INTERRUPTS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


def only(folder: Path, *names: str) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_a_second_run_replaces_the_first(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call(*PACK, out).code == 0
    (out / "generate-gcc").mkdir()
    first = contents(out)
    assert call(*PACK, out, "-q", "q4").code == 0
    assert contents(out).keys() == first.keys()
    assert contents(out)["model.bin"] != first["model.bin"]
    assert not (out / "generate-gcc").exists()
    only(tmp_path, "out")


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    assert call(*PACK, out).code == 6
    assert contents(tmp_path) == {"out/thesis.tex": b"mine"}


def test_an_empty_folder_and_a_link_to_one_are_taken(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        assert call(*PACK, tmp_path / "link").code == 0
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real" / "manifest.json").is_file()
        only(tmp_path, "link", "real")


def test_the_current_folder_is_not_pulled_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "deep")
    result = call(*PACK, ".")
    assert result.code == 6
    assert "current folder" in result.err
    assert Path.cwd().is_dir()


def test_new_parents_are_made_and_go_again_on_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(*PACK, tmp_path / "a" / "b" / "out").code == 0
    monkeypatch.setattr("colibri.cli.workflow.write_folder", _full)
    assert call(*PACK, tmp_path / "c" / "d" / "out").code == 6
    only(tmp_path, "a")


def _full(folder: Path, *args: object) -> None:
    (folder / "model.bin").write_bytes(b"half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_up_leaves_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    assert call(*PACK, out).code == 0
    before = contents(tmp_path)
    monkeypatch.setattr("colibri.cli.workflow.write_folder", _full)
    result = call(*PACK, out, "-q", "q4", "--json")
    assert result.code == 6
    validate(result.document, "error")
    assert "free space" in result.err
    assert contents(tmp_path) == before
    only(tmp_path, "out")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=128k", "colibri-test", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this needs the right to mount a tmpfs")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    result = call(*PACK, small_disk / "out")
    assert result.code == 6
    assert "No space left on device" in result.error_lines()[0]
    only(small_disk)


def test_temporary_files_on_a_full_disk(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, no_build: Callable[..., None]
) -> None:
    no_build()
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    assert call("verify", MIXTRAL, "-b", LINUX).code == 6
    only(small_disk)


def test_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nope"))
    result = call("verify", MIXTRAL, "-b", LINUX)
    assert result.code == 6
    assert "TMPDIR" in result.error_lines()[0]


def test_two_writers_of_one_folder_take_turns(tmp_path: Path) -> None:
    target, failures = tmp_path / "out", []

    def write(name: str) -> None:
        try:
            for _ in range(60):
                with replaced_folder(target, "marker") as work:
                    for file in ("marker", "a", "b"):
                        (work / file).write_text(name)
        except OutputError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(set(contents(target).values())) == 1
    only(tmp_path, "out")


def test_two_packs_into_one_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    both = [process(*PACK, out, "-q", quant) for quant in ("q8", "q4")]
    assert [finish(running).code for running in both] == [0, 0]
    assert call("inspect", out, "--verify").code == 0
    only(tmp_path, "out")


SLOW_VECTORS = "import time, colibri.cli.workflow as w; w.make_vectors = lambda *a, **k: time.sleep(60)\n" + MAIN


@pytest.mark.parametrize(("number", "code"), INTERRUPTS)
def test_an_interrupted_pack(number: int, code: int, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    running = process(*PACK, out, "--json", program=SLOW_VECTORS)
    wait_for(lambda: list(tmp_path.glob("new/.colibri-*")))
    os.kill(running.pid, number)
    result = finish(running)
    assert result.code == code
    assert result.document["error"]["code"] == "interrupted"
    validate(result.document, "error")
    assert "Traceback" not in result.err
    only(tmp_path)


@pytest.mark.parametrize(("number", "code"), INTERRUPTS)
def test_an_interrupted_build(number: int, code: int, packed: Folders, tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    shutil.copytree(packed(AN547), folder)
    (folder / "generate-gcc").mkdir()
    (folder / "generate-gcc" / "build.json").write_text("the old one")
    script = f"echo gcc 12.2.0; [ $1 = --version ] || {{ touch {tmp_path}/compiling; sleep 1; }}"
    program(tmp_path / "bin", "arm-none-eabi-gcc", script)
    before = contents(folder)
    running = process("build", folder, env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    wait_for((tmp_path / "compiling").exists)
    os.kill(running.pid, number)
    result = finish(running)
    assert (result.code, result.out, result.err.strip()) == (code, "", "")
    assert list(in_session(running.pid)) == []
    assert contents(folder) == before


NO_BUILD = "import colibri.cli.targets as t; t.built = lambda *a: __import__('pathlib').Path('/dev/null')\n" + MAIN


@pytest.mark.parametrize(("number", "code"), INTERRUPTS)
@pytest.mark.parametrize("command", [("verify",), ("run", "-p", "ids: 1")])
def test_an_interrupted_simulation(number: int, code: int, command: tuple[str, ...], tmp_path: Path) -> None:
    """Of a checkpoint: its packed folder is temporary."""
    (tmp_path / "tmp").mkdir()
    program(
        tmp_path / "bin",
        "qemu-system-arm",
        f"echo $$ > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/up; exec sleep 600",
    )
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "TMPDIR": str(tmp_path / "tmp")}
    running = process(command[0], MIXTRAL, "-b", AN547, *command[1:], program=NO_BUILD, env=env)
    wait_for((tmp_path / "up").exists)
    simulator = int((tmp_path / "up").read_text())
    assert alive(simulator)
    os.kill(running.pid, number)
    result = finish(running)
    assert result.code == code
    assert result.out == ""
    assert "rror" not in result.err
    assert not alive(simulator)
    only(tmp_path / "tmp")


def test_a_reader_that_goes_away() -> None:
    running = process("inspect", MIXTRAL, "--json")
    assert running.stdout is not None
    running.stdout.close()
    running.stdout = None
    result = finish(running)
    assert (result.code, result.err) == (6, "")


def test_a_full_standard_output() -> None:
    with Path("/dev/full").open("w") as full:
        result = finish(process("boards", stdout=full))
    assert result.code == 6
    assert "No space left on device" in result.error_lines()[0]


def test_names_with_blanks_letters_and_worse(tmp_path: Path) -> None:
    """The name goes into the image, a C comment and a table; the path to compilers."""
    for name in ("a checkpoint", "modèle é", "new\nline", os.fsdecode(b"bad\xff"), 'q"uo\\te', "a=b,c", "*", "x" * 240):
        folder, out = tmp_path / "in" / name, tmp_path / "out" / name
        shutil.copytree(MIXTRAL, folder)
        assert call(*PACK[:1], folder, *PACK[2:], out).code == 0
        header = (out / "model_config.h").read_text("utf-8").splitlines()
        assert header[0].startswith("/* ")
        assert header[0].endswith(" */")
        assert call("inspect", out, "--verify", "--json").code == 0
    only(tmp_path / "out", *(path.name for path in (tmp_path / "in").iterdir()))


def test_a_locale_without_the_letters(tmp_path: Path) -> None:
    shutil.copytree(MIXTRAL, tmp_path / "modèle")
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = finish(process("pack", tmp_path / "modèle", "-b", LINUX, "-o", tmp_path / "é", env=env))
    assert (result.code, "Traceback" in result.err) == (0, False)
    result = finish(process("inspect", tmp_path / "modèle", env=env))
    assert result.code == 0


def test_colibri_pack_is_colibri_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*PACK, tmp_path / "a").code == 0
    monkeypatch.setattr(sys, "argv", ["colibri-pack", *map(str, PACK[1:]), str(tmp_path / "b")])
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        pack_main()
    signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert "colibri-pack" in (ROOT / "pyproject.toml").read_text()


def test_progress_is_on_standard_error_only(tmp_path: Path) -> None:
    result = call(*PACK, tmp_path / "out")
    assert result.out.count("\n") == 1
    assert "packing mixtral as q8" in result.err
    assert "packing" not in result.out


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_everywhere(command: str) -> None:
    args = [command] if command else []
    assert call(*args, "-h").code == call(*args, "--help").code == 0
    assert "Usage" in call(*args, "-h").out


def test_no_color_is_honoured() -> None:
    """Also where FORCE_COLOR asks for a terminal's colours."""
    env = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    running = [process("-h", env=env), process("-h", env={**env, "NO_COLOR": "1"})]
    coloured, plain = (finish(one).out for one in running)
    assert "\x1b[" in coloured
    assert not any(f"\x1b[{n}" in plain or f";{n}" in plain for n in (3, 4, 9))


@pytest.mark.parametrize(
    ("text", "value"), [("128", 128), ("0x80", 128), ("0X8_0", 128), ("1K", 1024), ("0x1M", 1 << 20), ("2G", 2 << 30)]
)
def test_integers(text: str, value: int) -> None:
    from colibri.cli.options import IntegerType

    assert IntegerType().convert(text, None, None) == value


@pytest.mark.parametrize("text", ["", "K", "1k", "-1", "1.5", "0x", "1KB", "010", "1e3", "x", str(1 << 64)])
def test_what_is_no_integer(text: str) -> None:
    assert call("plan", MIXTRAL, "--max-seq", text).code == 2
