# SPDX-License-Identifier: Apache-2.0
"""scripts/setup.sh against a machine made of stubs: which packages are there, who runs it, and what breaks half-way."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What the script may use besides the stubs. Nothing else is on PATH, so nothing real can be installed by a test.
UTILITIES = ["sh", "cat", "cksum", "dirname", "env", "mkdir", "mv", "rm", "sed", "chmod", "touch", "flock", "cp"]
UTILITIES += ["sleep", "true"]  # for the stubs

PYTHON = """
echo "python3 $*" >> "$LOG"
case "$1 $2" in
"-c import sys"*"< (3, 11))") [ ! -e "$STUBS/python-is-old" ] ;;
"-c import ensurepip"*) [ -e "$STUBS/has-ensurepip" ] ;;
"--version "*) echo "Python 3.9.2" ;;
"-m venv")
    rm -rf .venv
    mkdir -p .venv/bin
    cp "$STUBS/venv-python" .venv/bin/python
    [ ! -e "$STUBS/venv-fails" ]
    ;;
*) exit 99 ;;
esac
"""

VENV_PYTHON = """
echo "venv-python $*" >> "$LOG"
case "$1 $2" in
"-m pip")
    [ ! -e .venv/.setup-demo ] && [ ! -e .venv/.setup-test ] || exit 97
    if [ -e "$STUBS/pip-is-killed" ]; then kill -KILL $PPID; exit 1; fi
    [ ! -e "$STUBS/pip-fails" ] || exit 1
    [ ! -e "$STUBS/pip-is-slow" ] || sleep 0.5
    cp "$0" .venv/bin/colibri
    ;;
"-c import"*) [ ! -e "$STUBS/import-fails" ] ;;
*) exit 99 ;;
esac
"""

APT_GET = """
echo "apt-get $*" >> "$LOG"
case "$*" in
*" update") [ ! -e "$STUBS/apt-update-fails" ] ;;
*" install "*)
    [ ! -e "$STUBS/apt-install-fails" ] || exit 100
    for package in "$@"; do
        case $package in
        gcc-arm-none-eabi) command=arm-none-eabi-gcc ;;
        gcc-riscv64-unknown-elf) command=riscv64-unknown-elf-gcc ;;
        gcc-aarch64-linux-gnu) command=aarch64-linux-gnu-gcc ;;
        qemu-system-misc) command=qemu-system-riscv64 ;;
        python3-venv) touch "$STUBS/has-ensurepip" && continue ;;
        qemu-user) command=qemu-x86_64 ;;
        llvm-19) command=llvm-mca-19 ;;
        libc6-dev) touch "$STUBS/has-libc-headers" && continue ;;
        libclang-rt-19-dev) mkdir -p "$STUBS/clang/lib/linux" && touch "$STUBS/$FUZZER" && continue ;;
        qemu-system-arm | clang-19 | gcc | g++) command=$package ;;
        *) continue ;;
        esac
        cp "$STUBS/$command.package" "$STUBS/$command"
    done
    ;;
esac
"""

PROGRAMS = (
    *("arm-none-eabi-gcc", "qemu-system-arm", "llvm-mca-19", "qemu-x86_64", "g++"),
    *("riscv64-unknown-elf-gcc", "qemu-system-riscv64", "aarch64-linux-gnu-gcc"),
)
GCC = '[ -e "$STUBS/has-libc-headers" ]'
CLANG = '[ "$1" = -print-resource-dir ] && echo "$STUBS/clang"'
FUZZER = "clang/lib/linux/libclang_rt.fuzzer-x86_64.a"

DEMO_LINE = "apt-get install -y --no-install-recommends gcc-arm-none-eabi qemu-system-arm python3-venv"
TEST_LINE = (
    "apt-get install -y --no-install-recommends"
    " gcc-arm-none-eabi qemu-system-arm gcc g++ clang-19 llvm-19 qemu-user"
    " gcc-riscv64-unknown-elf qemu-system-misc gcc-aarch64-linux-gnu libc6-dev libclang-rt-19-dev python3-venv"
)


@dataclass
class Machine:
    """A checkout in a folder with spaces, and the commands that this machine has."""

    checkout: Path
    stubs: Path
    log: Path

    def command(self, name: str, body: str = "exit 0") -> None:
        file = self.stubs / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def flag(self, name: str) -> Path:
        (self.stubs / name).touch()
        return self.stubs / name

    def user(self, uid: int) -> None:
        self.command("id", f"echo {uid}")

    def packages_present(self) -> None:
        for name in PROGRAMS:
            self.command(name)
        self.command("gcc", GCC)
        self.command("clang-19", CLANG)
        (self.stubs / FUZZER).parent.mkdir(parents=True, exist_ok=True)
        self.flag(FUZZER)
        self.flag("has-ensurepip")
        self.flag("has-libc-headers")

    def start(self, stage: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["/bin/sh", str(self.checkout / "scripts" / "setup.sh"), stage],
            env={"PATH": str(self.stubs), "LOG": str(self.log), "STUBS": str(self.stubs), "FUZZER": FUZZER},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def setup(self, stage: str) -> subprocess.CompletedProcess[str]:
        self.log.write_text("")
        process = self.start(stage)
        stdout, stderr = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def calls(self, start: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(start)]

    def stamps(self) -> list[str]:
        return sorted(file.name for file in (self.checkout / ".venv").glob(".setup-*"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    checkout = tmp_path / "one's own checkout, with spaces"
    (checkout / "scripts").mkdir(parents=True)
    for name in ["pyproject.toml", "scripts/setup.sh"]:
        shutil.copy(ROOT / name, checkout / name)
    stubs = tmp_path / "the commands here"
    stubs.mkdir()
    for name in UTILITIES:
        found = shutil.which(name)
        if found is not None:
            (stubs / name).symlink_to(found)
    m = Machine(checkout, stubs, tmp_path / "log")
    m.command("python3", PYTHON)
    m.command("venv-python", VENV_PYTHON)
    m.command("apt-get", APT_GET)
    for name in PROGRAMS:
        m.command(f"{name}.package")
    m.command("gcc.package", GCC)
    m.command("clang-19.package", CLANG)
    m.user(1000)
    return m


# --- who may install what -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stage", "line"), [("demo", DEMO_LINE), ("test", TEST_LINE)])
def test_user_without_packages_gets_one_exact_line_and_exit_4(machine: Machine, stage: str, line: str) -> None:
    if Path("/usr/include/stdio.h").exists():  # the script looks there when there is no gcc to ask
        line = line.replace(" libc6-dev", "")
    result = machine.setup(stage)
    assert result.returncode == 4
    assert [text for text in result.stderr.splitlines() if "apt-get install" in text] == [line]
    assert result.stdout == ""
    assert machine.calls("apt-get") == []
    assert not (machine.checkout / ".venv").exists()


def test_line_names_only_what_is_missing(machine: Machine) -> None:
    machine.packages_present()
    (machine.stubs / "qemu-system-arm").unlink()
    result = machine.setup("demo")
    assert result.returncode == 4
    assert result.stderr.endswith("\n\napt-get install -y --no-install-recommends qemu-system-arm\n")


def test_headers_are_asked_of_the_compiler_that_is_there(machine: Machine) -> None:
    machine.packages_present()
    (machine.stubs / "has-libc-headers").unlink()
    result = machine.setup("test")
    assert result.returncode == 4
    assert result.stderr.endswith("\n\napt-get install -y --no-install-recommends libc6-dev\n")


def test_the_fuzzers_runtime_is_asked_of_the_compiler_that_is_there(machine: Machine) -> None:
    machine.packages_present()
    (machine.stubs / FUZZER).unlink()
    result = machine.setup("test")
    assert result.returncode == 4
    assert result.stderr.endswith("\n\napt-get install -y --no-install-recommends libclang-rt-19-dev\n")
    assert machine.setup("demo").returncode == 0


def test_user_with_packages_needs_no_apt(machine: Machine) -> None:
    machine.packages_present()
    (machine.stubs / "apt-get").unlink()
    result = machine.setup("test")
    assert result.returncode == 0, result.stderr
    assert machine.stamps() == [".setup-demo", ".setup-test"]


def test_root_updates_first_says_what_it_installs_and_goes_on(machine: Machine) -> None:
    machine.user(0)
    result = machine.setup("demo")
    assert result.returncode == 0, result.stderr
    update, install = machine.calls("apt-get")
    assert update.endswith(" update")
    assert install.endswith(" install -y --no-install-recommends gcc-arm-none-eabi qemu-system-arm python3-venv")
    assert "nothing recommended: gcc-arm-none-eabi qemu-system-arm python3-venv" in result.stderr
    assert machine.stamps() == [".setup-demo"]


def test_demo_installs_no_more_than_the_demo_needs(machine: Machine) -> None:
    machine.user(0)
    assert machine.setup("demo").returncode == 0
    assert machine.calls("venv-python -m pip")[0].endswith(" --editable .")
    assert not (machine.stubs / "gcc").exists()


def test_sudo_is_used_only_if_it_asks_no_password(machine: Machine) -> None:
    machine.command("sudo", 'echo "sudo $*" >> "$LOG"; [ -e "$STUBS/sudo-is-free" ] || exit 1; shift; exec "$@"')
    result = machine.setup("demo")
    assert result.returncode == 4
    assert machine.calls("sudo") == ["sudo -n true"]
    machine.flag("sudo-is-free")
    result = machine.setup("demo")
    assert result.returncode == 0, result.stderr
    assert all(call.startswith("sudo -n ") for call in machine.calls("sudo"))
    assert len(machine.calls("apt-get")) == 2


def test_another_system_is_told_what_is_needed(machine: Machine) -> None:
    (machine.stubs / "apt-get").unlink()
    machine.user(0)
    result = machine.setup("demo")
    assert result.returncode == 4
    assert "no apt-get" in result.stderr
    assert "gcc-arm-none-eabi qemu-system-arm python3-venv" in result.stderr
    assert "apt-get install" not in result.stderr


def test_old_package_lists_do_not_stop_the_installation(machine: Machine) -> None:
    machine.user(0)
    machine.flag("apt-update-fails")
    assert machine.setup("demo").returncode == 0


def test_failed_installation_is_exit_4_with_the_line(machine: Machine) -> None:
    machine.user(0)
    machine.flag("apt-install-fails")
    result = machine.setup("demo")
    assert result.returncode == 4
    assert result.stderr.endswith(f"\n\n{DEMO_LINE}\n")


def test_installation_that_brings_nothing_is_noticed(machine: Machine) -> None:
    machine.user(0)
    machine.command("apt-get")
    result = machine.setup("demo")
    assert result.returncode == 4
    assert "still missing after the installation" in result.stderr


def test_old_python_is_named(machine: Machine) -> None:
    machine.packages_present()
    machine.flag("python-is-old")
    result = machine.setup("demo")
    assert result.returncode == 4
    assert "expected 3.11 or newer, got Python 3.9.2" in result.stderr


def test_unknown_stage_is_a_usage_error(machine: Machine) -> None:
    assert machine.setup("everything").returncode == 2


# --- the stamp ------------------------------------------------------------------------------------------------------


def test_finished_setup_does_nothing_again(machine: Machine) -> None:
    machine.packages_present()
    assert machine.setup("test").returncode == 0
    for stage in ["test", "demo"]:
        result = machine.setup(stage)
        assert (result.returncode, result.stderr) == (0, "")
        assert machine.log.read_text() == ""


@pytest.mark.parametrize("failure", ["venv-fails", "pip-fails", "pip-is-killed", "import-fails"])
def test_interrupted_setup_leaves_no_stamp_and_is_begun_anew(machine: Machine, failure: str) -> None:
    machine.packages_present()
    flag = machine.flag(failure)
    assert machine.setup("demo").returncode != 0
    assert (machine.checkout / ".venv" / "bin" / "python").exists()  # what must not be mistaken for a set-up
    assert machine.stamps() == []
    flag.unlink()
    assert machine.setup("demo").returncode == 0
    assert machine.calls("python3 -m venv") == ["python3 -m venv --clear .venv"]
    assert machine.stamps() == [".setup-demo"]


@pytest.mark.parametrize("failure", ["venv-fails", "pip-fails"])
def test_failure_of_python_is_exit_4(machine: Machine, failure: str) -> None:
    machine.packages_present()
    machine.flag(failure)
    assert machine.setup("demo").returncode == 4


def test_edited_pyproject_runs_pip_again_in_the_same_venv(machine: Machine) -> None:
    machine.packages_present()
    assert machine.setup("demo").returncode == 0
    with (machine.checkout / "pyproject.toml").open("a") as file:
        file.write("# edited\n")
    assert machine.setup("demo").returncode == 0
    assert machine.calls("python3 -m venv") == []
    assert len(machine.calls("venv-python -m pip")) == 1


def test_update_that_pip_refuses_keeps_the_venv_and_is_tried_again(machine: Machine) -> None:
    machine.packages_present()
    assert machine.setup("demo").returncode == 0
    flag = machine.flag("pip-fails")
    with (machine.checkout / "pyproject.toml").open("a") as file:
        file.write("# edited where there is no network\n")
    assert machine.setup("demo").returncode == 4
    assert machine.setup("demo").returncode == 4
    flag.unlink()
    assert machine.setup("demo").returncode == 0
    assert machine.calls("python3 -m venv") == []
    assert len(machine.calls("venv-python -m pip")) == 1


def test_update_that_is_killed_begins_anew(machine: Machine) -> None:
    machine.packages_present()
    assert machine.setup("demo").returncode == 0
    flag = machine.flag("pip-is-killed")
    assert machine.setup("test").returncode != 0
    flag.unlink()
    assert machine.stamps() == []
    assert machine.setup("test").returncode == 0
    assert len(machine.calls("python3 -m venv")) == 1


def test_test_setup_adds_the_test_extra_to_a_demo_setup(machine: Machine) -> None:
    machine.packages_present()
    assert machine.setup("demo").returncode == 0
    assert machine.setup("test").returncode == 0
    assert machine.calls("python3 -m venv") == []
    assert machine.calls("venv-python -m pip")[0].endswith(" --editable .[test]")


def test_moved_checkout_is_set_up_anew(machine: Machine) -> None:
    machine.packages_present()
    assert machine.setup("demo").returncode == 0
    machine.checkout = machine.checkout.rename(machine.checkout.with_name("moved"))
    assert machine.setup("demo").returncode == 0
    assert len(machine.calls("python3 -m venv")) == 1


@pytest.mark.skipif(shutil.which("flock") is None, reason="no flock, no lock")
def test_two_at_once_are_one_setup(machine: Machine) -> None:
    machine.packages_present()
    machine.flag("pip-is-slow")
    both = [machine.start("demo"), machine.start("demo")]
    for process in both:
        process.communicate()
    assert [process.returncode for process in both] == [0, 0]
    assert len(machine.calls("venv-python -m pip")) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_checkout_is_exit_6(machine: Machine) -> None:
    machine.packages_present()
    machine.checkout.chmod(0o555)
    try:
        assert machine.setup("demo").returncode == 6
    finally:
        machine.checkout.chmod(0o755)
