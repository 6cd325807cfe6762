# SPDX-License-Identifier: Apache-2.0
"""colibri export-c: what it writes compiles by itself, says what the golden model says, and shares a program with another."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cli.command import MIXTRAL, ROOT, call, contents, validate
from colibri.build.toolchain import CONTRACT, NO_VECTORISE, STRICT
from colibri.cli import workflow
from colibri.folder import read_folder

LINUX = "linux-x86_64"
STORIES = ROOT / "weights" / "stories-moe-3m"
MICRO = ROOT / "weights" / "micro-moe"
FLAGS = ["gcc", *STRICT, "-O1", *CONTRACT, *NO_VECTORISE["gcc"]]

# One a model: it includes that model's headers, and steps its sequence.
PART = """
#include <stdio.h>
#include "colibri_model.h"
int STEP(int32_t id);
int STEP(int32_t id)
{
    static colibri_model_t model;
    static colibri_state_t state;
    static float logits[COLIBRI_VOCAB_SIZE];
    if (id < 0) {
        return colibri_init(&model, colibri_weights, COLIBRI_IMAGE_BYTES, COLIBRI_INIT_CHECK_CRC) != COLIBRI_OK ||
               colibri_state_init(&state, &model) != COLIBRI_OK;
    }
    return colibri_forward(&model, &state, &id, 1, logits, NULL) != COLIBRI_OK ||
           fwrite(logits, sizeof logits, 1, stdout) != 1;
}
"""
MAIN = """
#include <stdint.h>
#include <stdio.h>
uint64_t colibri_port_cycles(void);
uint64_t colibri_port_cycles(void) { return 0; }
int step_stories(int32_t id);
int step_micro(int32_t id);
int main(void)
{
    int which;
    int id;
    while (scanf("%d %d", &which, &id) == 2) {
        if ((which == 0 ? step_stories(id) : step_micro(id)) != 0) {
            return 1;
        }
    }
    return 0;
}
"""


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, Path]]:
    """A packed folder and what was exported from it."""
    made: dict[tuple[object, ...], tuple[Path, Path]] = {}

    def make(checkpoint: Path, board: str = LINUX, name: str | None = None) -> tuple[Path, Path]:
        if (checkpoint, board, name) not in made:
            base = tmp_path_factory.mktemp("export")
            options = ["--name", name] if name else []
            options += [] if board == LINUX else ["--kernels", "portable"]  # they are compiled for this machine here
            assert call("pack", checkpoint, "-b", board, "-o", base / "packed", *options).code == 0
            assert call("export-c", base / "packed", "-o", base / "out").code == 0
            made[checkpoint, board, name] = base / "packed", base / "out"
        return made[checkpoint, board, name]

    return make


def compiled(objects: Path, *sources: Path | str, include: Path, define: str = "COLIBRI_TEST") -> list[Path]:
    """Objects of some sources, which see one folder of headers."""
    objects.mkdir()
    command = [*FLAGS, f"-D{define}", f"-I{include}", "-c", *map(str, sources)]
    result = subprocess.run(command, cwd=objects, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return sorted(objects.iterdir())


def library(out: Path, objects: Path) -> list[Path]:
    sources = [path for path in sorted((out / "src").rglob("*")) if path.suffix in (".c", ".S")]
    return compiled(objects, *sources, include=out / "src")


def linked(program: Path, *what: Path | str) -> Path:
    result = subprocess.run(["gcc", *map(str, what), "-o", str(program)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return program


def said(program: Path, ids: list[int]) -> list[int]:
    return [int(line) for line in subprocess.check_output([program, *map(str, ids)], text=True).split()]


def greedy(packed: Path, ids: list[int]) -> list[int]:
    golden = workflow.golden_of(read_folder(packed))
    tokens: list[int] = []
    for _ in range(16):
        golden.rewind(0)
        tokens.append(int(np.argmax(golden.forward([*ids, *tokens]).logits[-1])))
    return tokens


@pytest.mark.parametrize("name", [None, "stories"])
def test_the_example_says_the_golden_models_tokens(
    folders: Callable[..., tuple[Path, Path]], tmp_path: Path, name: str | None
) -> None:
    packed, out = folders(MIXTRAL, LINUX, name)
    objects = library(out, tmp_path / "lib")
    objects += compiled(tmp_path / "example", out / "example" / "main.c", include=out / "src")
    program = linked(tmp_path / "program", *objects)
    assert said(program, [5, 6, 7]) == greedy(packed, [5, 6, 7])
    assert subprocess.run([program, "-1"], check=False).returncode == 1


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_cmake_builds_the_example(folders: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    packed, out = folders(MIXTRAL)
    for command in (["cmake", "-S", out, "-B", tmp_path], ["cmake", "--build", tmp_path, "--", "VERBOSE=1"]):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if re.search(r"src/\S+\.c(\s|$)", line) and " -c " in line]
    assert len(lines) > 30
    for line in lines:
        assert {"-std=c11", *CONTRACT} <= set(line.split())
    assert said(tmp_path / "example", [5, 6, 7]) == greedy(packed, [5, 6, 7])


def test_the_linker_snippet_puts_the_weights_at_their_address(
    folders: Callable[..., tuple[Path, Path]], tmp_path: Path
) -> None:
    """Packed for a board, linked here: the address is the same, and everything around it works as before."""
    packed, out = folders(MIXTRAL, "mps3-an547")
    assert (out / "src/weights/model.hex").read_bytes() == (packed / "model.hex").read_bytes()
    objects = library(out, tmp_path / "lib")
    objects += compiled(tmp_path / "example", out / "example" / "main.c", include=out / "src")
    program = linked(tmp_path / "program", "-no-pie", *objects, "-T", out / "src/weights/weights.ld")
    symbols = subprocess.check_output(["nm", program], text=True)
    assert re.search(r"(?m)^0*28000000 R colibri_weights$", symbols)
    assert said(program, [5, 6, 7]) == greedy(packed, [5, 6, 7])


def test_two_models_share_a_program(folders: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    """Token by token in turn, and every logit has the bits that each model's vectors.json says."""
    objects: list[Path] = []
    models = [folders(STORIES, LINUX, "stories"), folders(MICRO, LINUX, "micro")]
    (tmp_path / "part.c").write_text(PART)
    (tmp_path / "main.c").write_text(MAIN)
    for name, (_, out) in zip(("stories", "micro"), models, strict=True):
        objects += library(out, tmp_path / name)
        part = tmp_path / f"{name}_part"
        objects += compiled(part, tmp_path / "part.c", include=out / "src", define=f"STEP=step_{name}")
    objects += compiled(tmp_path / "main", tmp_path / "main.c", include=tmp_path)
    program = linked(tmp_path / "program", *objects)
    vectors = [json.loads((packed / "vectors.json").read_text())["prompts"] for packed, _ in models]
    lines, expected = [], b""
    for pair in zip(*vectors, strict=True):
        lines += ["0 -1", "1 -1"]
        assert len({len(prompt["ids"]) for prompt in pair}) == 1
        for position in range(len(pair[0]["ids"])):
            for which, prompt in enumerate(pair):
                lines.append(f"{which} {prompt['ids'][position]}")
                expected += bytes.fromhex(prompt["logits"][position])
    result = subprocess.run([program], input="\n".join(lines).encode(), capture_output=True, check=False)
    assert result.returncode == 0
    assert len(lines) > 200
    assert result.stdout == expected
    names = subprocess.check_output(["nm", "-g", "--defined-only", program], text=True)
    assert set(re.findall(r"\bcolibri_\w+", names)) == {"colibri_port_cycles"}


def test_the_same_bytes_wherever_it_is_made(folders: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    packed, out = folders(MIXTRAL, "mps3-an547")
    other = tmp_path / "other place" / "packed"
    shutil.copytree(packed, other)
    (other / "origin.json").unlink()  # what only this machine knows
    assert call("export-c", other, "-o", tmp_path / "out").code == 0
    assert contents(out) == contents(tmp_path / "out")
    text = b"\n".join(data for name, data in contents(out).items() if not name.endswith((".bin", ".hex")))
    for place in (ROOT, Path.home(), tmp_path, packed.parent):
        assert f"{place}/".encode() not in text


def test_it_is_written_whole_or_not_at_all(folders: Callable[..., tuple[Path, Path]], tmp_path: Path) -> None:
    packed, out = folders(MIXTRAL)
    copy = tmp_path / "out"
    shutil.copytree(out, copy)
    (copy / "left over").touch()
    assert call("export-c", packed, "-o", copy).code == 0
    assert contents(copy) == contents(out)
    before = contents(packed)
    assert call("export-c", packed, "-o", packed).code == 6
    assert contents(packed) == before
    assert call("export-c", MIXTRAL, "-o", tmp_path / "none").code == 2
    assert not (tmp_path / "none").exists()


def test_export_json_lists_every_file(folders: Callable[..., tuple[Path, Path]]) -> None:
    for _, out in (folders(MIXTRAL), folders(MIXTRAL, "mps3-an547")):
        record = json.loads((out / "export.json").read_text())
        validate({"folder": "x", **record}, "export-c")
        assert {*record["files"], "export.json"} == contents(out).keys()
        assert (out / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_what_build_systems_ask_for(tmp_path: Path) -> None:
    """Required fields are there, files are those that exist, and no name of a checkpoint breaks a format."""
    checkpoint = tmp_path / 'a <b> & "c" @ID@ é'
    shutil.copytree(MIXTRAL, checkpoint)
    assert call("pack", checkpoint, "-b", LINUX, "-o", tmp_path / "packed").code == 0
    assert call("export-c", tmp_path / "packed", "-o", tmp_path / "out").code == 0
    out, title = tmp_path / "out", f"{checkpoint.name} as q8 for {LINUX}"

    platformio = json.loads((out / "library.json").read_text())
    assert (platformio["name"], platformio["description"]) == ("colibri-model", title)
    assert {*CONTRACT, *NO_VECTORISE["gcc"]} == set(platformio["build"]["flags"])

    lines = (out / "library.properties").read_text("utf-8").splitlines()[1:]
    properties = dict(line.split("=", 1) for line in lines)
    required = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"}
    assert required <= properties.keys()
    assert properties["sentence"] == title

    # PACK.xsd: all of these once; a component needs Cclass, Cgroup, Cversion, description and files
    package = ET.parse(out / "Colibri.colibri-model.pdsc").getroot()
    assert package.tag == "package"
    assert package.attrib["schemaVersion"]
    children = [child.tag for child in package]
    assert len(children) == len(set(children))
    assert {"name", "vendor", "description", "url", "releases", "components"} <= set(children)
    assert package.findtext("description") == title
    assert f"{package.findtext('vendor')}.{package.findtext('name')}.pdsc" == "Colibri.colibri-model.pdsc"
    assert all(re.fullmatch(r"[\w-]+", package.findtext(tag) or "") for tag in ("vendor", "name"))
    (component,) = package.findall("components/component")
    assert {"Cclass", "Cgroup", "Cversion"} <= component.attrib.keys()
    (release,) = package.findall("releases/release")
    assert release.attrib["version"] == component.attrib["Cversion"] == properties["version"] == platformio["version"]
    files = {file.attrib["name"]: file.attrib["category"] for file in component.findall("files/file")}
    assert all((out / name).exists() for name in [*files, package.findtext("license") or ""])
    sources = {name for name in contents(out) if name.startswith("src/")}
    assert sources <= files.keys()
    assert all(files[name] == "sourceC" for name in sources if name.endswith(".c"))

    cmake = (out / "CMakeLists.txt").read_text()
    assert set(re.findall(r"(?m)^    (src/\S+)$", cmake)) == {n for n in sources if n.endswith((".c", ".S"))}
