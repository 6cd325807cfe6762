# SPDX-License-Identifier: Apache-2.0
"""pack --text, build --app text, and run with the device's own tokenizer."""

from __future__ import annotations

import json
import shutil
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.command import MAIN, MIXTRAL, ROOT, call, finish, process, program, validate
from cli.conftest import Folders
from cli.test_cli_run import expected
from colibri.folder import read_folder
from colibri.tokenizer import Streamer, Tokenizer
from colibri_sim.golden import Sampling
from colibri_sim.qemu.frames import encode

LINUX = "linux-x86_64"
LIMIT = 40


@pytest.fixture(scope="module")
def on_device(bytes_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with a tokenizer of bytes in its image, and the application text built."""
    folder = tmp_path_factory.mktemp("text") / "packed"
    result = call("pack", bytes_checkpoint, "-b", LINUX, "-o", folder, "--text", LIMIT, "--json")
    assert result.code == 0, result.err
    validate(result.document, "pack")
    assert result.document["settings"]["text_bytes"] == LIMIT
    result = call("build", folder, "--app", "text", "--json")
    assert result.code == 0, result.err
    validate(result.document, "build")
    return folder


@pytest.mark.parametrize("prompt", ["ABC", "é", "A" * LIMIT])
def test_text_and_tokens_are_those_of_a_run_with_the_hosts_tokenizer(
    prompt: str, on_device: Path, no_build: Callable[..., None]
) -> None:
    no_build(text=on_device / "text-gcc" / "firmware.elf")
    tokenizer = Tokenizer((on_device / "model_tokenizer.json").read_bytes(), "")
    ids = tokenizer.encode(prompt)
    new = expected(on_device, ids, 30, Sampling(5.0, 0, 1.0, 5))
    args = ("run", on_device, "-p", prompt, "-n", 30, "--temperature", 5, "--seed", 5)
    whole = tokenizer.decode([*ids, *new])
    assert call(*args).out == whole + "\n"
    lines = [json.loads(line) for line in call(*args, "--json").out.splitlines()]
    assert [(line["id"], line["position"]) for line in lines] == [(t, len(ids) + i) for i, t in enumerate(new)]
    assert Streamer(tokenizer, ids).shown + "".join(line["text"] for line in lines) == whole
    for line in lines:
        validate(line, "run")


def test_ids_are_continued_by_generate(on_device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def note(folder: object, board: object, app: str, *rest: object) -> Path:
        built.append(app)
        return Path("/nothing")

    monkeypatch.setattr("colibri.cli.targets.built", note)
    for prompt in ("ids: 1 2", "ABC"):
        call("run", on_device, "-p", prompt)
    assert built == ["generate", "text"]


@pytest.mark.parametrize("prompt", ["x" * (LIMIT + 1), "é" * (LIMIT // 2) + "x"])
def test_a_prompt_too_long_for_the_buffer_is_refused_before_the_build(prompt: str, on_device: Path) -> None:
    result = call("run", on_device, "-p", prompt)
    error, hint = result.error_lines()
    assert result.code == 2
    assert f"at most {LIMIT} bytes" in error
    assert f"--text {LIMIT + 1}" in hint
    assert "building" not in result.err


def test_an_image_without_the_tokenizer_cannot_be_built_for_text(
    packed: Folders, bytes_checkpoint: Path, tmp_path: Path
) -> None:
    """Three reasons, each with what helps: not asked for, no tokenizer, one that the tables cannot express."""
    plain, other = tmp_path / "plain", tmp_path / "other"
    assert call("pack", bytes_checkpoint, "-b", LINUX, "-o", plain).code == 0
    shutil.copytree(plain, other)
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["device_tokenizer"] = {"unsupported": "a normalizer of type Lowercase"}
    (other / "manifest.json").write_text(json.dumps(manifest))
    for folder, words in ((plain, "--text"), (packed(LINUX), "tokenizer.json"), (other, "generate")):
        result = call("build", folder, "--app", "text")
        error, hint = result.error_lines()
        assert result.code == 2
        assert "an image with the tokenizer" in error
        assert words in hint
        assert not (folder / "text-gcc").exists()


@pytest.mark.parametrize("command", ["plan", "pack", "run"])
def test_a_checkpoint_without_a_tokenizer_is_refused(command: str, tmp_path: Path) -> None:
    more = {"plan": (), "pack": ("-o", tmp_path / "out"), "run": ("-p", "ids: 1")}[command]
    result = call(command, MIXTRAL, "-b", LINUX, "--text", 8, *more)
    assert result.code == 2
    assert result.error_lines()[0].startswith("--text: expected a checkpoint whose tokenizer")
    assert call("plan", MIXTRAL, "--text", 8).code == call("pack", MIXTRAL, "--text", 8, "-o", tmp_path / "x").code == 2


def test_plan_says_what_text_takes() -> None:
    demo = ROOT / "weights" / "stories-moe-3m"
    without, with_text = (call("plan", demo, "-b", "mps2-an386", "--json", *o).document for o in ((), ("--text", 512)))
    for document in (without, with_text):
        validate(document, "plan")
    assert without["text"] | {"in_image": True} == with_text["text"]
    assert without["text"]["in_image"] is False
    flash, ram = with_text["flash"]["parts"], with_text["ram"]["parts"]
    text = with_text["text"]
    assert flash["tokenizer"] == {"bytes": text["table_bytes"], "kind": "exact"}
    assert ram["text"] == {"bytes": text["array_bytes"], "kind": "exact"}
    assert flash["code"]["bytes"] - without["flash"]["parts"]["code"]["bytes"] == text["code_bytes"]
    assert not {"tokenizer", "text"} & (without["flash"]["parts"].keys() | without["ram"]["parts"].keys())
    assert call("plan", MIXTRAL, "-b", LINUX, "--json").document["text"] is None
    shown = call("plan", demo, "-b", "mps2-an386").out.splitlines()[-2:]
    assert shown[0].startswith("text on the device, with --text 512: ")
    assert f"{text['array_bytes']:,} bytes of RAM" in shown[0]
    (compiler, per_character) = next(iter(text["instructions_per_character"].items()))
    assert f"{per_character:,.0f} ({compiler} -O2)" in shown[1]


def test_the_tokenizer_is_a_block_of_the_image_with_its_own_checksum(on_device: Path, tmp_path: Path) -> None:
    document = call("inspect", on_device / "model.bin", "--json").document
    validate(document, "inspect")
    (entry,) = [one for one in document["experts"] if one["kind"] == "tokenizer"]
    image = bytearray((on_device / "model.bin").read_bytes())
    assert entry["bytes"] == read_folder(on_device).manifest["device_tokenizer"]["bytes"]
    image[entry["offset"] + 200] ^= 4
    (tmp_path / "model.bin").write_bytes(image)
    result = call("inspect", tmp_path / "model.bin", "--verify")
    assert result.code == 3
    assert "model.bin: the tokenizer: " in result.error_lines()[0]


def target(tmp_path: Path, *frames: bytes, pause: float = 0.0) -> str:
    """A stub in the ELF's place that sends frames, with a pause behind each."""
    script = "import sys, time; w = sys.stdout.buffer\n" + "".join(
        f"w.write({frame!r}); w.flush(); time.sleep({pause})\n" for frame in frames
    )
    (tmp_path / "target.py").write_text(script)
    path = program(tmp_path, "target", f"exec {sys.executable} {tmp_path / 'target.py'}")
    return f"import colibri.cli.targets as t, pathlib; t.built = lambda *a: pathlib.Path({str(path)!r})\n"


def ids_frame(*ids: int) -> bytes:
    return encode("I", struct.pack(f"<{len(ids)}i", *ids))


def test_text_is_shown_as_its_frames_arrive(on_device: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer((on_device / "model_tokenizer.json").read_bytes(), "")
    (first,) = tokenizer.encode("A")
    prompt = [encode("U", b"A"), ids_frame(first)]
    new = [encode("U", "é".encode()) + encode("K", bytes(4)), encode("U", b"!") + encode("K", bytes(4))]
    stub = target(tmp_path, b"".join(prompt), *new, pause=0.6)
    running = process("run", on_device, "-p", "A", program=stub + MAIN)
    assert running.stdout is not None
    shown = running.stdout.read(3)
    at = time.monotonic()
    rest = finish(running)
    assert shown == "Aé".encode()
    assert time.monotonic() - at > 1.0
    assert (rest.code, rest.out) == (0, "!\n")


def test_other_ids_than_the_hosts_are_a_negative_verdict(on_device: Path, tmp_path: Path) -> None:
    stub = target(tmp_path, ids_frame(1, 2, 3) + encode("K", bytes(4)))
    result = finish(process("run", on_device, "-p", "A", program=stub + MAIN))
    assert result.code == 1
    assert "the prompt's ids on the device" in result.error_lines()[0]
    assert result.out == ""
