# SPDX-License-Identifier: Apache-2.0
"""Everything a user can get wrong: one error that says where, what was expected, what was found and what to do."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.command import MIXTRAL, ROOT, Result, call, contents, program
from cli.conftest import Folders

LINUX, AN547 = "linux-x86_64", "mps3-an547"
BOARDS = sorted(path.stem for path in (ROOT / "linker" / "boards").iterdir())


def refused(code: int, *args: object, **said: str) -> Result:
    """Run; check the code, and that where, expected, got and hint hold what is given (a regular expression each)."""
    result = call(*args, "--json")
    assert result.code == code, result.err
    fields = result.document["error"]
    for field, pattern in said.items():
        assert re.search(pattern, fields[field]), f"{field}: {fields[field]!r}"
    error, hint = result.error_lines()
    assert fields["hint"] == hint
    assert all(error.count(fields[field]) >= 1 for field in ("where", "expected", "got"))
    return result


PLAN = ("plan", MIXTRAL, "-b", AN547)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((*PLAN, "--weights-addr", "0x100"), {"where": "0x100", "expected": "qspi 0x28000000", "hint": "0x28000000"}),
        ((*PLAN, "--weights-addr", "0x28000010"), {"expected": "multiple of 64", "hint": "use 0x28000000"}),
        (("plan", MIXTRAL, "-b", LINUX, "--weights-addr", "0x28000000"), {"hint": "leave the option out"}),
        (("plan", MIXTRAL, "-b", "nope"), {"expected": ".*".join(BOARDS), "got": "nope"}),
        (("plan", MIXTRAL, "-b", "mps3-an548"), {"hint": f"did you mean {AN547}"}),
        (("plan", MIXTRAL, "-b", "nope.toml"), {"got": "nothing there"}),
        ((*PLAN, "-q", "router=q8"), {"got": "router", "hint": "always float32"}),
        ((*PLAN, "-q", "norms=q8"), {"hint": "always float32"}),
        ((*PLAN, "-q", "nope=q8"), {"expected": "embedding.*experts", "got": "nope"}),
        ((*PLAN, "-q", "q9"), {"expected": "q8 or q4"}),
        ((*PLAN, "-q", "experts=q4"), {"hint": "default=q8,experts=q4"}),
        ((*PLAN, "--max-seq", "129"), {"expected": "1 to 128", "got": "129"}),
        ((*PLAN, "--max-seq", "0"), {"got": "from 1 to"}),
        ((*PLAN, "--name", "9x"), {"got": "C identifier"}),
        ((*PLAN, "--expert-align", "48"), {"got": "power of two"}),
        (("golden", MIXTRAL, "--ids", "1,x"), {"where": "--ids"}),
        (("golden", MIXTRAL, "--ids", "96"), {"expected": "0 to 95", "got": "96"}),
        (("run", MIXTRAL, "-b", LINUX, "-p", "ids: 1", "--temperature", "nan"), {"got": "temperature"}),
        (("run", MIXTRAL, "-b", LINUX, "-p", "ids: 1", "--top-p", "0"), {"got": "top_p"}),
        (("run", MIXTRAL, "-b", LINUX, "-p", "ids: 1", "--timeout", "nan"), {"got": "seconds"}),
        (("run", MIXTRAL, "-b", LINUX, "-p", "ids: 1", "--timeout", "1e400"), {"got": "seconds"}),
        (("run", MIXTRAL, "-b", LINUX, "-p", "ids: 1 96"), {"where": "-p", "expected": "0 to 95"}),
        (("verify", MIXTRAL, "-b", LINUX, "-b", "nope"), {"where": "nope"}),
        (("verify", MIXTRAL, "-b", LINUX, "--all-boards"), {"where": "--all-boards"}),
        (("verify", MIXTRAL, "--all-boards", "-q", "q9"), {"where": "-q q9"}),
        (("verify", MIXTRAL, "--all-boards", "--max-seq", "129"), {"expected": "1 to 128"}),
        (("verify", MIXTRAL, "-b", LINUX, "--prompts", "nope.txt"), {"where": "nope.txt"}),
        (("bench", MIXTRAL, "-b", LINUX, "-b", "nope"), {"where": "nope"}),
        (("inspect", "/dev/null"), {"got": "something else"}),
    ],
    ids=lambda value: " ".join(map(str, value[2:])) if isinstance(value, tuple) else "",
)
def test_usage(args: tuple[object, ...], said: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before anything is built."""
    monkeypatch.setattr("colibri.cli.targets.built", None)
    refused(2, *args, **said)


@pytest.mark.parametrize("args", [("pack", "-o", "out"), ("run", "-p", "ids: 1"), ("verify",), ("audit",)])
def test_a_missing_board_lists_those_on_which_the_model_fits(args: tuple[str, ...], tmp_path: Path) -> None:
    result = refused(2, args[0], MIXTRAL, *args[1:], where="-b", hint="the model fits on")
    plans = call("plan", MIXTRAL, "--json").document["plans"]
    assert {plan["board"] for plan in plans} == set(BOARDS)
    fitting = [plan["board"] for plan in plans if plan["fits"]]
    assert 0 < len(fitting) < len(BOARDS)
    assert result.document["error"]["hint"] == "the model fits on " + ", ".join(fitting)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda f: _cut(f / "model.safetensors", 100), {"where": "model.safetensors"}),
        (lambda f: _cut(f / "model.safetensors", 5), {"where": "model.safetensors"}),
        (lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 4096), {"where": "model.safetensors"}),
        (lambda f: (f / "model.safetensors").unlink(), {"expected": "safetensors"}),
        (lambda f: (f / "config.json").unlink(), {"where": "config.json", "got": "no such file"}),
        (lambda f: (f / "config.json").write_text("{"), {"where": "config.json"}),
        (lambda f: _config(f, model_type="gpt9"), {"where": "model_type", "got": "gpt9", "expected": "mixtral"}),
        (lambda f: _config(f, hidden_size=49), {"where": "config.json|tensor"}),
        (lambda f: (f / "tokenizer.json").write_text("{}"), {"where": "tokenizer.json"}),
    ],
)
def test_checkpoints(spoil: Callable[[Path], object], said: dict[str, str], tmp_path: Path) -> None:
    folder, out = tmp_path / "ckpt", tmp_path / "out"
    shutil.copytree(MIXTRAL, folder)
    spoil(folder)
    refused(3, "pack", folder, "-b", LINUX, "-o", out, **said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ckpt"]


def _cut(path: Path, n_bytes: int) -> None:
    path.write_bytes(path.read_bytes()[:n_bytes])


def _config(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_tokenizer_of_another_model(bytes_checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ckpt"
    shutil.copytree(bytes_checkpoint, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer["model"]["vocab"] = {c: i + 90 for c, i in tokenizer["model"]["vocab"].items()}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    refused(3, "pack", folder, "-b", LINUX, "-o", tmp_path / "out", where="tokenizer.json", expected="0 to 95")


def small_board(folder: Path, **n_bytes: int) -> Path:
    """The an547 with smaller regions, and weights in one of them only."""
    text = (ROOT / "linker" / "boards" / f"{AN547}.toml").read_text("utf-8")
    text = text.replace(f'name = "{AN547}"', 'name = "small"').replace('["qspi", "ddr"]', '["qspi"]')
    for region, size in n_bytes.items():
        text = re.sub(rf"(?m)^({region} = .*bytes = )\w+", rf"\g<1>{size}", text)
    path = folder / "small.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("n_bytes", "given", "hint"),
    [
        ({"qspi": 52 << 10}, [], "it fits with -q q4"),
        ({"qspi": 64 << 10}, ["-q", "f32"], "it fits with -q q8"),
        ({"ram": 20 << 10}, [], "it fits with --kv f16"),
        ({"ram": 18 << 10}, [], "it fits with --kv q8"),
        ({"ram": 20 << 10}, ["--kv", "q8", "--max-seq", "64"], ""),
        ({"ram": 10 << 10}, [], "it fits with .*--max-seq"),
        ({"qspi": 8 << 10}, [], "choose a larger board"),
    ],
)
def test_a_model_that_does_not_fit(n_bytes: dict[str, int], given: list[str], hint: str, tmp_path: Path) -> None:
    board, out = small_board(tmp_path, **n_bytes), tmp_path / "out"
    plan = call("plan", MIXTRAL, "-b", board, *given, "--json")
    assert plan.document["fits"] is (hint == "")
    assert plan.code == int(hint != "")
    if not hint:
        return
    (over,) = [r for r in plan.document["regions"] if r["used"] > r["length"]]
    too_many = f"{over['used'] - over['length']:,} too many"
    told = call("plan", MIXTRAL, "-b", board, *given)
    assert too_many in told.error_lines()[0]
    packed = refused(1, "pack", MIXTRAL, "-b", board, "-o", out, *given, where=over["name"], got=too_many, hint=hint)
    assert packed.document["error"]["code"] == "does_not_fit"
    assert not out.exists()
    remedy = packed.document["error"]["hint"].partition("it fits with ")[2]
    if remedy:  # the last of an option counts
        assert call("plan", MIXTRAL, "-b", board, *given, *remedy.split()).code == 0


def test_no_board_at_all_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colibri.cli.workflow.list_boards", lambda: ())
    for args in (("verify", MIXTRAL, "--all-boards"), ("bench", MIXTRAL)):
        refused(1, *args, got="none", hint="colibri plan")


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("verify", ["-b", "mps2-an386"]),
        ("verify", ["-q", "q4"]),
        ("bench", ["-q", "q4"]),
        ("audit", ["-q", "q4"]),
        ("verify", ["--kv", "q8", "--max-seq", "32"]),
        ("verify", ["--weights-addr", "0x28001000"]),
        ("verify", ["--expert-align", "sector", "--name", "stories"]),
    ],
)
def test_packing_options_on_a_packed_folder(command: str, given: list[str], packed: Folders, tmp_path: Path) -> None:
    folder = packed(AN547)
    hint = refused(2, command, folder, *given, where=given[0], got=given[0]).document["error"]["hint"]
    words = shlex.split(hint.partition("pack again: ")[2])
    assert words[:2] == ["colibri", "pack"]
    assert all(word in words for word in given)
    words[words.index("OTHER")] = str(tmp_path / "other")
    assert call(*words[1:]).code == 0
    before, after = (json.loads((f / "manifest.json").read_text())["settings"] for f in (folder, tmp_path / "other"))
    changed = {
        "-b": {"board", "kernels", "weights_address"},
        "-q": {"quant"},
        "--kv": {"kv", "max_seq"},
        "--weights-addr": {"weights_address"},
        "--expert-align": {"prefix", "expert_align"},
    }[given[0]]
    assert {key for key in after if after[key] != before[key]} == changed


@pytest.mark.parametrize(("given", "kept"), [(["-q", "q4"], True), (["-b", "mps2-an500"], False)])
def test_the_pack_command_keeps_the_kernel_set_of_a_board(given: list[str], kept: bool, tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    assert call("pack", MIXTRAL, "-b", "mps2-an386", "--kernels", "portable", "-o", folder).code == 0
    hint = refused(2, "verify", folder, *given, where=given[0]).document["error"]["hint"]
    assert ("--kernels portable" in hint) is kept
    refused(2, "verify", folder, "--kernels", "armv7em", where="--kernels", hint="--kernels armv7em")


def test_kernels_that_the_board_does_not_run(tmp_path: Path) -> None:
    out = tmp_path / "packed"
    refused(2, "pack", MIXTRAL, "-b", "mps2-an385", "--kernels", "armv7em", "-o", out, where="--kernels armv7em")
    assert call("pack", MIXTRAL, "-b", "mps2-an385", "-o", out).code == 0
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["settings"]["kernels"] = "armv7em"
    (out / "manifest.json").write_text(json.dumps(manifest))
    refused(3, "build", out, where=str(out), got="one for armv7em", hint="colibri pack")


@pytest.mark.parametrize(("given", "kept"), [(["-q", "q4"], True), (["-b", "mps2-an386"], False)])
def test_the_pack_command_keeps_what_was_chosen(given: list[str], kept: bool, tmp_path: Path) -> None:
    """An address of one's own stays, except on another board, which has other addresses."""
    folder, chosen = tmp_path / "a b", ["--weights-addr", "0x28001000", "--kv", "q8", "--name", "stories"]
    assert call("pack", MIXTRAL, "-b", AN547, "-o", folder, *chosen).code == 0
    hint = refused(2, "verify", folder, *given).document["error"]["hint"]
    assert ("--weights-addr 0x28001000" in hint) is kept
    words = shlex.split(hint.partition("pack again: ")[2].replace("OTHER", shlex.quote(str(tmp_path / "other"))))
    assert call(*words[1:]).code == 0
    settings = json.loads((tmp_path / "other" / "manifest.json").read_text())["settings"]
    assert (settings["kv"], settings["prefix"]) == ("q8", "stories")


def test_a_packed_folder_is_no_checkpoint(packed: Folders, tmp_path: Path) -> None:
    for args in (("plan",), ("pack", "-b", LINUX, "-o", tmp_path / "o"), ("golden", "--ids", "1")):
        refused(2, args[0], packed(LINUX), *args[1:], hint=re.escape(str(MIXTRAL)))


def test_a_checkpoint_is_no_packed_folder() -> None:
    hint = refused(2, "build", MIXTRAL, got="no manifest.json").document["error"]["hint"]
    assert f"colibri pack {MIXTRAL} -b BOARD -o" in hint


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (lambda f: _cut(f / "model.bin", 100), "model.bin"),
        (lambda f: (f / "model.bin").unlink(), "model.bin"),
        (lambda f: _cut(f / "manifest.json", 100), "manifest.json"),
        (lambda f: (f / "manifest.json").write_text("[]"), "manifest.json"),
        (lambda f: (f / "manifest.json").write_text('{"schema_version": 1}'), "manifest.json: name"),
        (lambda f: (f / "manifest.json").write_text('{"schema_version": 9}'), "schema_version"),
        (lambda f: (f / "vectors.json").unlink(), "vectors.json"),
        (lambda f: (f / "vectors.json").write_text("{}"), "vectors.json"),
        (lambda f: (f / f"{LINUX}.toml").unlink(), f"{LINUX}.toml"),
        (lambda f: (f / f"{LINUX}.toml").write_text("# changed"), "packed"),
        (lambda f: (f / "origin.json").write_text("{}"), "origin.json"),
    ],
)
def test_damaged_packed_folders(
    spoil: Callable[[Path], object], where: str, packed: Folders, tmp_path: Path, no_build: Callable[..., None]
) -> None:
    no_build()
    folder = tmp_path / "packed"
    shutil.copytree(packed(LINUX), folder)
    spoil(folder)
    refused(3, "verify", folder, where=re.escape(where))


def test_images_and_elfs_that_are_none(packed: Folders, tmp_path: Path) -> None:
    image = (packed(LINUX) / "model.bin").read_bytes()
    cut, flipped, elf = tmp_path / "cut.bin", tmp_path / "flipped.bin", tmp_path / "x.elf"
    cut.write_bytes(image[:5000])
    flipped.write_bytes(image[:40000] + bytes([image[40000] ^ 1]) + image[40001:])
    elf.write_bytes(b"\x7fELF" + bytes(100))
    refused(3, "inspect", cut, got="5000 bytes")
    assert call("inspect", flipped).code == 0
    refused(3, "inspect", flipped, "--verify", where="layer 0 expert 2", expected="CRC-32")
    refused(3, "inspect", elf)


@pytest.mark.parametrize("below", ["file", "file/x", "file/x/y"])
def test_output_below_a_file(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    refused(6, "pack", MIXTRAL, "-b", LINUX, "-o", tmp_path / below, where="file", got="file")
    assert contents(tmp_path) == {"file": b"mine"}


def test_output_where_nothing_can_be_made() -> None:
    refused(6, "pack", MIXTRAL, "-b", LINUX, "-o", "/proc/colibri", where="/proc/colibri", hint="-o")


def test_a_missing_compiler_names_one_package(packed: Folders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    shutil.copytree(packed(AN547), folder)
    monkeypatch.setenv("PATH", str(tmp_path))
    before = contents(folder)
    command = "apt-get install --no-install-recommends gcc-arm-none-eabi"
    assert refused(4, "build", folder, where="arm-none-eabi-gcc").document["error"]["hint"] == command
    result = call("verify", folder)
    assert result.code == 4
    assert result.out.count("apt-get") == 1
    assert command in result.out
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 1", {}),
        ("echo", {"got": "nothing"}),
        ("echo gcc 4.9.2", {"expected": "gcc 10 or newer", "got": "4.9.2"}),
        ("echo gcc 12.2.0; [ $1 = --version ] || { echo 'x.c:1: error: no' >&2; exit 1; }", {"got": "error: no"}),
    ],
)
def test_a_compiler_that_does_not_work(
    script: str, said: dict[str, str], packed: Folders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "packed"
    shutil.copytree(packed(AN547), folder)
    before = contents(folder)
    program(tmp_path / "bin", "arm-none-eabi-gcc", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    refused(4, "build", folder, **said)
    assert contents(folder) == before


def test_a_compiler_on_a_full_disk(packed: Folders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    shutil.copytree(packed(AN547), folder)
    script = "echo gcc 12.2.0; [ $1 = --version ] || { echo 'error: x.o: No space left on device' >&2; exit 1; }"
    program(tmp_path / "bin", "arm-none-eabi-gcc", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    refused(6, "build", folder, hint="free space")


def test_a_missing_simulator_names_one_package(
    packed: Folders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_build: Callable[..., None]
) -> None:
    no_build()
    monkeypatch.setenv("PATH", str(tmp_path))
    command = "apt-get install --no-install-recommends qemu-system-arm"
    result = refused(4, "run", packed(AN547), "-p", "ids: 1", where="qemu-system-arm")
    assert result.document["error"]["hint"] == command
    result = call("verify", packed(AN547))
    assert (result.code, result.out.count(command)) == (4, 1)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec sleep 600", "expected an end within 0.5 s"),
        ("exec >&-; exec sleep 600", "closed its output and went on"),
        ("exit 3", "status 3"),
        ("echo 'qemu: no' >&2; exit 1", "status 1"),
        ("kill -SEGV $$", "SIGSEGV"),
        ("echo garbage", "starts no frame"),
        ("printf CBS", "ends inside a frame"),
        ("exit 0", "the end of the response"),
    ],
)
def test_a_simulator_that_gives_no_verdict(
    script: str,
    said: str,
    packed: Folders,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    no_build: Callable[..., None],
) -> None:
    no_build()
    program(tmp_path / "bin", "qemu-system-arm", script)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    limit = "0.5" if "600" in script else "30"
    result = call("verify", packed(AN547), "--timeout", limit, "--json")
    assert result.code == 5
    (row,) = result.document["results"]
    assert row["status"] == "no_verdict"
    assert said in row["reason"]
    if said != "the end of the response":
        refused(5, "run", packed(AN547), "-p", "ids: 1", "--timeout", limit, got="" if "600" in script else said)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_of_several_results_the_worst_counts(
    packed: Folders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_build: Callable[..., None]
) -> None:
    """A simulator that is missing (4) and one that dies (5): 5."""
    no_build()
    program(tmp_path / "bin", "qemu-system-arm", "exit 3")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    result = call("verify", MIXTRAL, "-b", LINUX, "-b", AN547, "--json")
    assert result.code == 5
    assert len(result.document["results"]) == 2
