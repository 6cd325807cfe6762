# SPDX-License-Identifier: Apache-2.0
"""colibri run: the golden model's tokens, as text that streams."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from cli.command import MAIN, Result, call, finish, process, program
from cli.conftest import Folders
from colibri.cli import targets
from colibri.cli.workflow import board_of, golden_of
from colibri.folder import read_folder
from colibri.tokenizer import Streamer, Tokenizer
from colibri_sim.golden import Sampling
from colibri_sim.golden.sampler import generate
from colibri_sim.qemu.frames import END, encode, generate_request

LINUX, AN547 = "linux-x86_64", "mps3-an547"
CONTEXT = 128

SAMPLINGS = [
    ([], Sampling(1.0, 0, 1.0, 0)),
    (["--greedy"], Sampling()),
    (["--temperature", "0"], Sampling()),
    (["--temperature", "0.7", "--seed", "1"], Sampling(0.7, 0, 1.0, 1)),
    (["--temperature", "1.3", "--top-k", "5", "--seed", "0xFFFFFFFFFFFFFFFF"], Sampling(1.3, 5, 1.0, (1 << 64) - 1)),
    (["--temperature", "2", "--top-p", "0.6", "--seed", "7"], Sampling(2.0, 0, 0.6, 7)),
    (["--temperature", "5", "--top-k", "20", "--top-p", "0.9", "--seed", "1K"], Sampling(5.0, 20, 0.9, 1024)),
    (["--temperature", "128", "--top-k", "1"], Sampling(128.0, 1, 1.0, 0)),
    (["--greedy", "--temperature", "2", "--top-k", "3"], Sampling(0.0, 3, 1.0, 0)),
]


def expected(folder: Path, ids: Sequence[int], n: int, sampling: Sampling, eos: Sequence[int] = (2,)) -> list[int]:
    settings = json.dumps(
        read_folder(folder).manifest["settings"] | {"board": None, "weights_address": None, "kernels": None}
    )
    return list(_expected(_Packed(folder, settings), tuple(ids), n, sampling, tuple(eos)))


@dataclass(frozen=True)
class _Packed:
    """Packed folders of the same settings are equal: all of them hold the same model here."""

    folder: Path = field(compare=False)
    settings: str


@cache
def _expected(packed: _Packed, ids: tuple[int, ...], n: int, sampling: Sampling, eos: tuple[int, ...]) -> list[int]:
    return list(generate(golden_of(read_folder(packed.folder)), ids, n, sampling, eos))


def tokens(result: Result) -> list[int]:
    assert result.code == 0, result.err
    return [json.loads(line)["id"] for line in result.out.splitlines()]


@pytest.mark.parametrize(("options", "sampling"), SAMPLINGS)
def test_the_tokens_are_the_golden_models(
    options: list[str], sampling: Sampling, built: Callable[..., Path], no_build: Callable[..., None]
) -> None:
    elf = built(LINUX)
    no_build(generate=elf)
    folder = elf.parent.parent
    got = tokens(call("run", folder, "-p", "ids: 5 17 90", "-n", 24, *options, "--json"))
    assert got == expected(folder, [5, 17, 90], 24, sampling)


@pytest.mark.qemu
def test_the_tokens_of_a_microcontroller(built: Callable[..., Path], no_build: Callable[..., None]) -> None:
    elf = built(AN547)
    no_build(generate=elf)
    options, sampling = SAMPLINGS[6]
    got = tokens(call("run", elf.parent.parent, "-p", "ids: 5 17 90", "-n", 24, *options, "--json"))
    assert got == expected(elf.parent.parent, [5, 17, 90], 24, sampling)


@pytest.mark.qemu
def test_a_simulator_s_tokens_come_before_its_end(built: Callable[..., Path]) -> None:
    """The firmware flushes each token: the first is here while most are still to be computed."""
    elf = built(AN547)
    folder = read_folder(elf.parent.parent)
    request = generate_request([1], CONTEXT) + END
    start = time.monotonic()
    came = [time.monotonic() - start for _ in targets.frames(folder, board_of(folder), elf, request, 60.0)]
    assert len(came) > CONTEXT
    assert came[-1] - came[3] > 0.3 * came[-1]


def test_the_samplings_differ(packed: Folders) -> None:
    """Otherwise the comparison above would show little."""
    stories = {tuple(expected(packed(LINUX), [5, 17, 90], 24, sampling)) for _, sampling in SAMPLINGS}
    assert len(stories) == 6


@pytest.mark.parametrize(("n_prompt", "n", "count"), [(1, 1, 1), (3, 7, 7), (126, 10, 3), (127, 1, 1), (128, 5, 1)])
def test_how_many_tokens(
    n_prompt: int, n: int, count: int, built: Callable[..., Path], no_build: Callable[..., None]
) -> None:
    """-n of them, or as many as the context holds and one more, which needs no place in it."""
    elf = built(LINUX)
    no_build(generate=elf)
    ids = [(7 * i) % 96 for i in range(n_prompt)]
    prompt = "ids: " + ",".join(map(str, ids))
    folder = elf.parent.parent
    got = tokens(call("run", folder, "-p", prompt, "-n", n, "--greedy", "--json"))
    assert got == expected(folder, ids, n, Sampling(), ())
    assert len(got) == count
    assert call("run", folder, "-p", "ids:" + " 1" * (CONTEXT + 1)).code == 2


def test_an_end_token_ends(built: Callable[..., Path], no_build: Callable[..., None], tmp_path: Path) -> None:
    elf = built(LINUX)
    no_build(generate=elf)
    story = expected(elf.parent.parent, [5], 20, Sampling(1.0, 0, 1.0, 3), ())
    folder = tmp_path / "packed"
    shutil.copytree(elf.parent.parent, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["eos_ids"] = [95, story[7]]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    got = tokens(call("run", folder, "-p", "ids: 5", "-n", 20, "--temperature", 1, "--seed", 3, "--json"))
    assert got == story[: story.index(story[7]) + 1]


@pytest.fixture(scope="session")
def bytes_folder(
    bytes_checkpoint: Path, built: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """The tiny model with a tokenizer of bytes, packed, and an ELF that fits it: the engine knows no tokenizer."""
    folder = tmp_path_factory.mktemp("bytes") / "packed"
    assert call("pack", bytes_checkpoint, "-b", LINUX, "-o", folder).code == 0
    elf = built(LINUX)
    assert (folder / "model.bin").stat().st_size == (elf.parent.parent / "model.bin").stat().st_size
    return folder, elf


@pytest.mark.parametrize("prompt", ["ABC", "é", "ids: 3", "ids: 90 3"])
def test_the_stream_joins_to_the_whole_text(
    prompt: str, bytes_folder: tuple[Path, Path], no_build: Callable[..., None]
) -> None:
    """Also where characters take several tokens, are never finished, or begin in the prompt."""
    folder, elf = bytes_folder
    no_build(generate=elf)
    tokenizer = Tokenizer((folder / "model_tokenizer.json").read_bytes(), "")
    ids = tokenizer.encode(prompt) if not prompt.startswith("ids:") else [int(i) for i in prompt[4:].split()]
    new = expected(folder, ids, 30, Sampling(5.0, 0, 1.0, 5))
    args = ("run", folder, "-p", prompt, "-n", 30, "--temperature", 5, "--seed", 5)
    whole = tokenizer.decode([*ids, *new])
    assert call(*args).out == whole + "\n"
    lines = [json.loads(line) for line in call(*args, "--json").out.splitlines()]
    assert [line["id"] for line in lines] == new
    shown = Streamer(tokenizer, ids).shown
    assert shown + "".join(line["text"] for line in lines) == whole
    assert sum(1 for line in lines if line["text"] == "") > 2


def test_only_whole_characters_are_shown(bytes_folder: tuple[Path, Path]) -> None:
    tokenizer = Tokenizer((bytes_folder[0] / "model_tokenizer.json").read_bytes(), "")
    known = [i for i in range(96) if "\ufffd" not in tokenizer.decode([i])]
    unfinished = next(i for i in range(96) if i not in known)
    lead, rest = next(
        (a, b) for a in range(96) for b in range(32) if len(tokenizer.decode([a, b]).strip("\ufffd")) == 1
    )
    streamer = Streamer(tokenizer, [known[0], lead])
    assert streamer.shown + streamer.send(rest) == tokenizer.decode([known[0], lead, rest])
    streamer = Streamer(tokenizer, [known[0]])
    assert streamer.send(unfinished) == ""
    assert streamer.send(known[1]).startswith("\ufffd")
    assert streamer.finish() == ""


def test_text_comes_before_the_end(packed: Folders, bytes_folder: tuple[Path, Path], tmp_path: Path) -> None:
    """A target that sends a token, and a while later another: the first is shown long before the process ends."""
    frames = [encode("K", bytes([i, 0, 0, 0])) for i in (89, 90)]
    script = "import sys, time; w = sys.stdout.buffer\n" + "".join(
        f"w.write({frame!r}); w.flush(); time.sleep(0.6)\n" for frame in frames
    )
    (tmp_path / "target.py").write_text(script)
    target = program(tmp_path, "target", f"exec {sys.executable} {tmp_path / 'target.py'}")
    stub = f"import colibri.cli.targets as t, pathlib; t.built = lambda *a: pathlib.Path({str(target)!r})\n"
    ids, text = packed(LINUX), bytes_folder[0]
    for args, first in (([ids], b"89 "), ([ids, "--json"], b'{"schema'), ([text], b"AB")):
        running = process("run", *args, "-p", "ids: 88", program=stub + MAIN)
        assert running.stdout is not None
        shown = running.stdout.read(len(first))
        at = time.monotonic()
        rest = finish(running)
        assert shown == first
        assert time.monotonic() - at > 1.0
        assert rest.code == 0
