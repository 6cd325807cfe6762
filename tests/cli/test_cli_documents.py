# SPDX-License-Identifier: Apache-2.0
"""With --json: one document on standard output, as docs/schemas says, whatever happens."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click
import numpy as np
import pytest
from jsonschema import Draft202012Validator, ValidationError

from cli.command import CHECKPOINTS, MIXTRAL, ROOT, SCHEMAS, Result, call, validate
from cli.conftest import Folders
from colibri.cli.main import COMMANDS, module_of

LINUX = "linux-x86_64"


def test_each_command_has_a_schema_and_each_schema_is_valid() -> None:
    names = {path.name.removesuffix(".schema.json") for path in SCHEMAS.iterdir()}
    assert names == {*COMMANDS, *(f"bench-{mode}" for mode in ("kernels", "estimate", "constant-time")), "error"}
    for name in names:
        Draft202012Validator.check_schema(json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8")))


def strict(schema: str, *args: object) -> Result:
    """Run, validate, and see the schema refuse the same document without any one of its required fields."""
    result = call(*args, "--json")
    document = result.document
    validate(document, schema)
    for field in list(document):
        with pytest.raises(ValidationError):
            validate({k: v for k, v in document.items() if k != field}, schema)
    with pytest.raises(ValidationError):
        validate({**document, "schema_version": 2}, schema)
    return result


def test_plan_of_one_board() -> None:
    assert strict("plan", "plan", MIXTRAL, "-b", "mps3-an547").code == 0


def test_plan_of_all_boards() -> None:
    result = strict("plan", "plan", MIXTRAL)
    assert [plan["board"] for plan in result.document["plans"]] == sorted(p["board"] for p in result.document["plans"])


def test_pack(tmp_path: Path) -> None:
    assert strict("pack", "pack", MIXTRAL, "-b", "mps2-an386", "-o", tmp_path / "out").code == 0


def test_export_c(packed: Folders, tmp_path: Path) -> None:
    assert strict("export-c", "export-c", packed(LINUX), "-o", tmp_path / "out").code == 0


def test_export_gguf_and_inspect(tmp_path: Path) -> None:
    file = tmp_path / "out.gguf"
    assert strict("export-gguf", "export-gguf", MIXTRAL, "-o", file).code == 0
    assert strict("inspect", "inspect", file).document["config"]["family"] == "mixtral"


def test_build_lib_and_audit(packed: Folders, tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    shutil.copytree(packed(LINUX), folder)
    result = strict("build", "build", folder, "--app", "lib", "--opt", "0")
    assert result.document["builds"][0]["folder"] == str(folder / "lib-gcc-O0")


def test_build_and_audit_of_a_board(built: Callable[..., Path]) -> None:
    elf = built("mps3-an547")
    record = json.loads((elf.parent / "build.json").read_text())
    validate({"schema_version": 1, "builds": [{"folder": "x", **record}]}, "build")
    assert strict("audit", "audit", elf).code == 0
    assert strict("inspect", "inspect", elf).code == 0


def test_run_is_one_line_a_token(built: Callable[..., Path], no_build: Callable[..., None]) -> None:
    elf = built(LINUX)
    no_build(generate=elf)
    result = call("run", elf.parent.parent, "-p", "ids: 1 2 3", "-n", "4", "--greedy", "--json")
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["position"] for line in lines] == [3, 4, 5, 6]
    for line in lines:
        validate(line, "run")


def test_verify(built: Callable[..., Path], no_build: Callable[..., None]) -> None:
    elf = built(LINUX, "verify")
    no_build(verify=elf)
    result = strict("verify", "verify", elf.parent.parent)
    assert result.code == 0
    assert result.document["results"][0]["positions"] == 128


def test_verify_that_differs(built: Callable[..., Path], no_build: Callable[..., None], tmp_path: Path) -> None:
    elf = built(LINUX, "verify")
    folder = tmp_path / "packed"
    shutil.copytree(elf.parent.parent, folder)
    vectors = json.loads((folder / "vectors.json").read_text())
    vectors["prompts"][1]["trace_crc32"][5][2] ^= 1
    (folder / "vectors.json").write_text(json.dumps(vectors))
    no_build(verify=elf)
    result = strict("verify", "verify", folder)
    assert result.code == 1
    (row,) = result.document["results"]
    assert (row["status"], row["positions"]) == ("differs", 32)
    assert (row["first_difference"]["prompt"], row["first_difference"]["position"]) == (1, 5)


@pytest.mark.qemu
def test_bench(built: Callable[..., Path], no_build: Callable[..., None]) -> None:
    product = built("mps3-an547")
    no_build(generate=product, bench=built("mps3-an547", "bench"))
    result = strict("bench", "bench", product.parent.parent)
    assert result.code == 0
    (row,) = result.document["results"]
    counts = row["instructions_per_token"]
    assert list(counts.values()) == sorted(counts.values())
    assert row["operators"].keys() > {"embed", "attention", "router", "down", "head", "walk"}
    for at, in_all in counts.items():
        parts = {name: operator["instructions"][at] for name, operator in row["operators"].items()}
        assert all(part > 0 for part in parts.values())
        assert sum(parts.values()) == in_all
        outside = sum(parts[name] for name in ("embed", "final_norm", "head", "walk"))
        assert sum(layer[at] for layer in row["layers"]) == in_all - outside
        assert sum(function.get(at, 0) for function in row["functions"].values()) in (in_all, 0)
        macs = sum(operator["macs"][at] for operator in row["operators"].values())
        assert macs == row["macs_per_token"] + row["attention_macs_per_token"][at]
    assert len(row["layers"]) > 1
    assert sum(row["engine_functions"].values()) == row["engine_bytes"]


@pytest.mark.parametrize("name", ["mixtral", "llama", "mistral_swa"])
def test_golden(name: str) -> None:
    document = strict("golden", "golden", CHECKPOINTS / name, "--ids", "1,2,3").document
    assert len(document["logits"]) == len(document["experts"]) == 3
    assert all((chosen == []) == (name != "mixtral") for chosen in document["experts"][0])


def test_inspect_of_image_and_checkpoints(packed: Folders) -> None:
    assert strict("inspect", "inspect", packed(LINUX)).document["checksums"] == "not checked"
    assert strict("inspect", "inspect", packed(LINUX), "--verify").document["checksums"] == "hold"
    for path in sorted(CHECKPOINTS.iterdir()):
        strict("inspect", "inspect", path)


def test_boards() -> None:
    assert len(strict("boards", "boards").document["boards"]) == len(list((ROOT / "linker" / "boards").iterdir()))
    assert len(strict("boards", "boards", "mps3-an547").document["boards"]) == 1


def test_doctor_that_finds_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = strict("doctor", "doctor")
    assert result.code == 4
    assert result.document["install"].startswith("apt-get install --no-install-recommends ")
    assert {"gcc-arm-none-eabi", "qemu-system-arm"} <= set(result.document["install"].split())


@pytest.mark.qemu
def test_doctor_that_finds_all() -> None:
    result = strict("doctor", "doctor")
    assert result.document["ok"] is (result.code == 0)


@pytest.mark.qemu
def test_demo(tmp_path: Path) -> None:
    assert strict("demo", "demo", "-o", tmp_path / "demo").code == 0


def bad_lines(tmp_path: Path) -> dict[str, tuple[int, list[object]]]:
    return {
        "unknown command": (2, ["nope"]),
        "unknown option": (2, ["plan", MIXTRAL, "--nope"]),
        "missing argument": (2, ["plan"]),
        "missing option": (2, ["golden", MIXTRAL]),
        "bad choice": (2, ["pack", MIXTRAL, "-b", LINUX, "-o", tmp_path / "o", "--kv", "q7"]),
        "bad number": (2, ["plan", MIXTRAL, "--max-seq", "many"]),
        "unknown board": (2, ["boards", "nope"]),
        "no such folder": (2, ["build", tmp_path / "nope"]),
        "no checkpoint": (3, ["plan", tmp_path / "nope"]),
        "foreign folder": (6, ["pack", MIXTRAL, "-b", LINUX, "-o", ROOT]),
        "a prompt that is refused": (2, ["run", MIXTRAL, "-b", LINUX, "-p", "text"]),
        "verify without a board": (2, ["verify", MIXTRAL]),
        "inspect of nothing": (2, ["inspect", tmp_path / "nope"]),
        "audit of another ELF": (2, ["audit", "/bin/sh"]),
        "bench of nonsense": (2, ["bench", MIXTRAL, "-q", "q7"]),
    }


@pytest.mark.parametrize("name", bad_lines(Path()))
def test_an_error_is_one_document_too(name: str, tmp_path: Path) -> None:
    code, args = bad_lines(tmp_path)[name]
    result = call(*args, "--json")
    assert result.code == code
    assert result.out.count("\n") == 1
    validate(result.document, "error")
    error, hint = result.error_lines()
    fields = result.document["error"]
    assert (error, hint) == (f"{fields['where']}: expected {fields['expected']}, got {fields['got']}", fields["hint"])


def test_a_bug_is_one_document_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colibri.cli.boards.load_board", lambda name: 1 // 0)
    result = call("boards", "--json")
    assert result.code == 70
    assert "Traceback" in result.err
    validate(result.document, "error")
    assert result.document["error"]["code"] == "bug"


def test_a_float32_reads_back_to_the_same_bits() -> None:
    values = np.array(call("golden", MIXTRAL, "--ids", "5,6", "--json").document["logits"], np.float64)
    assert np.array_equal(values.astype(np.float32), values)
    assert len(np.unique(values)) > 100


def test_the_reference_names_every_command_and_option() -> None:
    text = (ROOT / "docs" / "COMMANDS.md").read_text("utf-8")
    for name in COMMANDS:
        assert f"`colibri {name}" in text
        for parameter in import_module(module_of(name)).command.params:
            if isinstance(parameter, click.Option):
                assert any(re.search(rf"(?<![\w-]){opt}(?![\w-])", text) for opt in parameter.opts), (
                    name,
                    parameter.opts,
                )
