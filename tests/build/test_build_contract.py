# SPDX-License-Identifier: Apache-2.0
"""The compiler is held to the arithmetic contract, and the link to the plan."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from colibri.audit.elf import Elf
from colibri.boards import list_boards, load_board
from colibri.build import firmware, products
from colibri.build.firmware import BuildOptions, build
from colibri.build.toolchain import CONTRACT, NO_VECTORISE, find_toolchain
from colibri.cli.workflow import board_of
from colibri.errors import NegativeVerdict, ToolError, UsageError
from colibri.folder import Folder
from colibri.layout.budget import Budget, budget
from image.packs import Packs, settings

UNDO = re.compile(
    r"-ffast-math|-Ofast|-ffp-contract=(?!off)|-f(associative|unsafe|finite|reciprocal)\S*|-ftree-(slp-)?vectorize"
)
REQUIRED = {
    "gcc": {"-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-tree-vectorize", "-Werror"},
    "llvm": {"-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-vectorize", "-fno-slp-vectorize", "-Werror"},
}


def recorded(packs: Packs, folder: Folder, **options: Any) -> list[list[str]]:
    """Every command of one build."""
    commands: list[list[str]] = []
    real = firmware.run

    def run(command: list[str], what: str, **others: Any) -> str:
        commands.append(command)
        return real(command, what, **others)

    with mock.patch.object(firmware, "run", run):
        build(packs.private(folder), board_of(folder), BuildOptions(**options))
    return commands


def check_commands(commands: list[list[str]], toolchain: str, opt: str) -> None:
    compiles = [c for c in commands if "-c" in c]
    assert len(compiles) > 30
    for command in compiles:
        assert set(command) >= REQUIRED[toolchain]
        assert not [flag for flag in command if UNDO.fullmatch(flag)]
        assert [flag for flag in command if re.fullmatch(r"-O\w*", flag)] == [f"-O{opt}"]
        if "/arch/linux/" not in command[command.index("-c") + 1]:
            assert "-ffreestanding" in command


def test_every_source_is_compiled_under_the_contract(packs: Packs) -> None:
    check_commands(recorded(packs, packs.folder("mixtral", "q8"), app="verify", opt="1"), "gcc", "1")


@pytest.mark.qemu
def test_every_source_is_compiled_under_the_contract_by_clang(packs: Packs) -> None:
    folder = packs.folder("mixtral", "q8", "mps2-an386")
    check_commands(recorded(packs, folder, app="bench", toolchain="llvm", opt="3"), "llvm", "3")


@pytest.mark.parametrize("name", list_boards())
def test_no_board_undoes_the_contract(name: str) -> None:
    board = load_board(name)
    for toolchain, described in board.toolchains.items():
        flags = [*described.flags, *described.link_flags]
        assert not [flag for flag in flags if UNDO.search(flag)]
        assert {*CONTRACT, *NO_VECTORISE[toolchain]} <= REQUIRED[toolchain]


PROBE = """
float product_sum(float a, float b, float c) { return a * b + c; }
float root(float x) { return __builtin_sqrtf(x); }
void sum(float *y, const float *x) { for (int i = 0; i < 64; i++) { y[i] = x[i] * 2.0f; } }
"""


def disassembled(tmp_path: Path, board: str, toolchain: str, opt: str, *, without: str = "") -> str:
    found = find_toolchain(load_board(board), toolchain)  # type: ignore[arg-type]  # the two names
    flags = [flag for flag in found.compile_flags(opt) if not without or not re.fullmatch(without, flag)]  # type: ignore[arg-type]
    (tmp_path / "probe.c").write_text(PROBE)
    strict = ("-Werror", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic")
    command = [found.compiler, *(f for f in flags if f not in strict), "-S", "probe.c", "-o", "probe.s"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return (tmp_path / "probe.s").read_text()


@pytest.mark.qemu
@pytest.mark.parametrize("opt", ["1", "2", "3", "s"])
@pytest.mark.parametrize("toolchain", ["gcc", "llvm"])
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_no_product_and_sum_becomes_an_fma(tmp_path: Path, board: str, toolchain: str, opt: str) -> None:
    code = disassembled(tmp_path, board, toolchain, opt)
    assert not re.search(r"\bvf(n?m[as])\b|\bvfma|\bvmul\.f32\s+q|\bbl\s+sqrtf|\bb\s+sqrtf", code)
    assert "vsqrt.f32" in code


@pytest.mark.qemu
def test_without_the_flags_the_probe_shows_what_they_prevent(tmp_path: Path) -> None:
    # GCC contracts by default in its own dialect; -std=c11 already asks it not to
    contracted = disassembled(tmp_path, "mps2-an386", "gcc", "2", without="-ffp-contract=off|-std=c11")
    assert re.search(r"\bvfma", contracted)
    vectorised = disassembled(tmp_path, "mps3-an547", "gcc", "2", without="-fno-tree-vectorize|-fno-math-errno")
    assert re.search(r"\bsqrtf\b", vectorised)
    vectorised = disassembled(tmp_path, "mps3-an547", "gcc", "3", without="-fno-tree-vectorize")
    assert re.search(r"v\w+\.f32\s+q", vectorised)


# --- a plan that lies


@pytest.fixture(scope="module")
def linked(packs: Packs) -> tuple[Folder, Elf, dict[str, int]]:
    folder = packs.folder("mixtral_odd", "q8", "mps3-an547")
    elf = Elf.read(packs.built(folder, "generate", opt="2") / "firmware.elf")
    return folder, elf, products.measure(elf)


def check(linked: tuple[Folder, Elf, dict[str, int]], manifest: dict[str, Any], measured: dict[str, int]) -> None:
    folder, elf, _ = linked
    lying = Folder(folder.path, manifest)
    products.check_against_plan(elf, measured, lying, board_of(folder), "gcc-12.2", "generate")


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("path", "named"),
    [
        (("plan", "ram", "parts", "kv_cache", "bytes"), "state"),
        (("plan", "ram", "parts", "activations", "bytes"), "state"),
        (("plan", "ram", "parts", "logits", "bytes"), "logits"),
        (("image", "bytes"), "weights bytes"),
        (("settings", "weights_address"), "weights address"),
    ],
)
@pytest.mark.parametrize("by", [-16, 16])
def test_an_exact_part_off_by_16_fails(linked: Any, path: tuple[str, ...], named: str, by: int) -> None:
    folder, _, measured = linked
    check(linked, folder.manifest, measured)
    manifest = copy.deepcopy(folder.manifest)
    place: Any = manifest
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] += by
    with pytest.raises(NegativeVerdict) as caught:
        check(linked, manifest, measured)
    assert caught.value.where == f"firmware.elf: {named}"
    assert caught.value.exit_code == 1


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["code", "statics", "stack"])
def test_a_bound_that_is_exceeded_fails(linked: Any, name: str) -> None:
    folder, _, measured = linked
    board = board_of(folder)
    bounds = {
        "code": budget(board.name, "gcc-12.2", "generate").code_bytes_of(0)
        + folder.manifest["plan"]["offset_table_bytes"],
        "statics": budget(board.name, "gcc-12.2", "generate").static_bytes,
        "stack": board.stack["generate"] + board.stack["fault"],
    }
    check(linked, folder.manifest, {**measured, name: bounds[name]})
    with pytest.raises(NegativeVerdict) as caught:
        check(linked, folder.manifest, {**measured, name: bounds[name] + 1})
    assert caught.value.where.startswith(f"firmware.elf: {name} with gcc-12.2 on mps3-an547")
    assert str(bounds[name]) in caught.value.expected


@pytest.mark.qemu
@pytest.mark.parametrize("app", ["verify", "bench"])
def test_a_long_context_is_not_held_against_the_bound_of_statics(packs: Packs, app: Any) -> None:
    """The ids of 2,048 positions alone take 8 KiB; what is left has the same bound as in a short context."""

    def longer(text: str) -> str:
        return text.replace('"max_position_embeddings": 128', '"max_position_embeddings": 4096')

    source = packs.doctored("llama", lambda tensors: None, longer)
    folder = packs.pack(source, settings("q8", max_seq=2048), "mps2-an386", ids=(1, 5))
    target = build(folder, board_of(folder), BuildOptions(app=app))
    measured = json.loads((target / "build.json").read_text())["measured"]
    elf = Elf.read(target / "firmware.elf")
    arrays = folder.manifest["plan"]["app_array_bytes"][app]
    assert elf.symbol_bytes("ids") == 4 * 2048
    in_trace = 4 * len(folder.vectors()["trace"])
    assert arrays == 4 * 2048 + (in_trace if app == "verify" else 0)
    assert elf.symbol_bytes("trace") == (in_trace + 12 if app == "verify" else 0)
    limit = budget("mps2-an386", "gcc-12.2", app).static_bytes
    assert 0 <= measured["statics"] - arrays <= limit
    with (
        mock.patch.object(products, "budget", return_value=Budget(1 << 20, measured["statics"] - arrays - 1)),
        pytest.raises(NegativeVerdict, match="statics"),
    ):
        build(folder, board_of(folder), BuildOptions(app=app))


@pytest.mark.qemu
def test_a_failing_build_leaves_the_earlier_one(packs: Packs) -> None:
    folder = packs.private(packs.folder("mixtral_odd", "q8", "mps3-an547"))
    target = folder.path / "verify-gcc-Os"
    options = BuildOptions(app="verify", opt="s")
    build(folder, board_of(folder), options)
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    with (
        mock.patch.object(products, "budget", return_value=Budget(1000, 1000)),
        pytest.raises(NegativeVerdict, match="code"),
    ):
        build(folder, board_of(folder), options)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before
    assert not [path for path in folder.path.iterdir() if path.name.startswith(".")]


def test_a_build_for_another_plan_does_not_compile(packs: Packs) -> None:
    """The engine's static assertion: model_config.h and the state must agree."""
    folder = packs.private(packs.folder("mixtral", "q8"))
    path = folder.path / "model_config.h"
    path.write_text(re.sub(r"(COLIBRI_STATE_BYTES) (\d+)u", r"\1 1600u", path.read_text()))
    with pytest.raises(ToolError, match="planner and engine disagree about the state"):
        build(folder, board_of(folder), BuildOptions(app="verify", opt="0"))


def test_build_json_says_what_was_built(packs: Packs) -> None:
    folder = packs.folder("mixtral", "q8")
    record = json.loads((packs.built(folder) / "build.json").read_text())
    assert (record["app"], record["board"], record["toolchain"], record["opt"]) == (
        "verify",
        "linux-x86_64",
        "gcc",
        "1",
    )
    assert record["config_hash"] == folder.manifest["config_hash"]
    assert record["image_sha256"] == folder.manifest["image"]["sha256"]
    assert re.fullmatch(r"gcc-\d+\.\d+", record["compiler"])


def test_a_missing_or_old_compiler_is_a_tool_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("linux-x86_64")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError) as caught:
        find_toolchain(board, "gcc")
    assert caught.value.exit_code == 4
    assert "apt-get install" in caught.value.hint
    fake = tmp_path / "gcc"
    fake.write_text("#!/bin/sh\necho 'gcc (Debian 8.3.0-6) 8.3.0'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(ToolError, match="gcc 10 or newer"):
        find_toolchain(board, "gcc")


def test_an_unknown_toolchain_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        find_toolchain(load_board("linux-x86_64"), "icc")  # type: ignore[arg-type]  # what this is about
