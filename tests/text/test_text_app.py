# SPDX-License-Identifier: Apache-2.0
"""Text in, text out on the target: the ids and the text of the tokenizers package, the tokens of the golden model."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from colibri.boards import load_board
from colibri.build.products import ELF
from colibri.cli import targets
from colibri.cli.workflow import Checkpoint, golden_of
from colibri.folder import IMAGE, Folder
from colibri.image.reader import read_image
from colibri.tokenizer import Tokenizer
from colibri_sim.golden import Sampling
from colibri_sim.golden.sampler import generate
from colibri_sim.qemu.frames import AROUND, END, Message, PromptIds, Status, Text, Token, encode, message, text_request
from image.packs import DEMO, Packs, checkpoint, settings

from .derived import tokenizer_json
from .samples import random_text

LINUX = "linux-x86_64"
PROMPT_BYTES, CONTEXT = 256, 64
ALGORITHMS = ("bytes", "characters", "unigram")
ON_BOARDS = (("mps2-an386", "characters"), ("virt-riscv32", "unigram"), ("virt-aarch64", "bytes"))
EACH = [
    *(pytest.param(LINUX, algorithm, id=f"{LINUX} {algorithm}") for algorithm in ALGORITHMS),
    *(pytest.param(*one, marks=pytest.mark.qemu, id=" ".join(one)) for one in ON_BOARDS),
]
PROMPT = "Once upon a time, Zoë met 日本 😀"
N_NEW = 20
ANY = Sampling(temperature=5.0, seed=5)
"""Nearly any token comes, and with them characters in parts and bytes that are none."""


def packed(packs: Packs, board: str, algorithm: str) -> Folder:
    """The demo with a tokenizer, packed once a session."""
    key = (board, algorithm)
    if key not in _folders:
        demo = checkpoint(DEMO)
        source = Checkpoint(replace(demo.model, tokenizer_json=tokenizer_json(algorithm)), demo.name)  # type: ignore[arg-type]
        chosen = settings(text_bytes=PROMPT_BYTES, max_seq=CONTEXT)
        _folders[key] = packs.pack(source, chosen, board, (1,))
    return _folders[key]


_folders: dict[tuple[str, str], Folder] = {}


def host(folder: Folder) -> Tokenizer:
    return Tokenizer((folder.path / "model_tokenizer.json").read_bytes(), "")


def golden_tokens(packs: Packs, algorithm: str) -> list[int]:
    """How the golden model continues PROMPT, on whatever board; computed once."""
    if algorithm not in _golden:
        folder = packed(packs, LINUX, algorithm)
        _golden[algorithm] = list(generate(golden_of(folder), host(folder).encode(PROMPT), N_NEW, ANY, ()))
    return _golden[algorithm]


_golden: dict[str, list[int]] = {}


def answers(packs: Packs, folder: Folder, *requests: bytes) -> list[list[Message]]:
    """What the application says to each request, its status last."""
    elf = packs.built(folder, "text") / ELF
    out: list[list[Message]] = [[]]
    for frame in targets.frames(folder, load_board(folder.board_name), elf, b"".join(requests) + END, 120.0):
        out[-1].append(message(frame))
        if isinstance(out[-1][-1], Status):
            out.append([])
    assert out.pop() == []
    return out


def text_of(answer: list[Message]) -> str:
    return "".join(one.text for one in answer if isinstance(one, Text))


def new_ids(answer: list[Message]) -> list[int]:
    return [one.id for one in answer if isinstance(one, Token)]


@pytest.mark.parametrize(("board", "algorithm"), EACH)
def test_prompts_and_tokens_are_those_of_the_host_and_the_golden_model(
    board: str, algorithm: str, packs: Packs
) -> None:
    folder = packed(packs, board, algorithm)
    tokenizer = host(folder)
    ids = tokenizer.encode(PROMPT)
    (answer,) = answers(packs, folder, text_request(PROMPT.encode(), N_NEW, **vars(ANY)))
    golden = golden_tokens(packs, algorithm)
    assert PromptIds(tuple(ids)) in answer
    assert new_ids(answer) == golden
    assert text_of(answer) == tokenizer.decode([*ids, *golden])
    assert answer[-1] == Status(0, len(ids) + len(golden) - 1)
    pieces = [one.text for one in answer if isinstance(one, Text)]
    assert all(pieces)  # whole characters: each payload was UTF-8
    assert len(pieces) > 5


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_waits_for_more_bytes_comes_with_the_last_token(algorithm: str, packs: Packs) -> None:
    folder = packed(packs, LINUX, algorithm)
    tokenizer = host(folder)
    ids, golden = tokenizer.encode(PROMPT), golden_tokens(packs, algorithm)
    whole = [tokenizer.decode([*ids, *golden[:n]]) for n in range(N_NEW + 1)]
    cut_short = [n for n in range(1, N_NEW + 1) if whole[n].endswith("\ufffd") or not whole[-1].startswith(whole[n])][
        :2
    ]
    assert cut_short
    requests = [text_request(PROMPT.encode(), n, **vars(ANY)) for n in cut_short]
    for n, answer in zip(cut_short, answers(packs, folder, *requests), strict=True):
        assert (new_ids(answer), text_of(answer)) == (golden[:n], whole[n])


@pytest.mark.parametrize(("board", "algorithm"), EACH)
def test_random_texts_are_tokenised_as_on_the_host(board: str, algorithm: str, packs: Packs) -> None:
    """With no token to generate nothing is computed but ids and text."""
    folder = packed(packs, board, algorithm)
    tokenizer = host(folder)
    rng = random.Random(algorithm)
    texts = [random_text(rng) for _ in range(400 if board == LINUX else 60)]
    wanted = [(text, ids) for text in texts if 1 <= len(ids := tokenizer.encode(text)) <= CONTEXT]
    requests = [text_request(text.encode()[:PROMPT_BYTES], 0) for text, _ in wanted]
    for (text, ids), answer in zip(wanted, answers(packs, folder, *requests), strict=True):
        assert answer[-2:] == [PromptIds(tuple(ids)), Status(0, 0)], repr(text)
        assert text_of(answer) == tokenizer.decode(ids), repr(text)
    assert len(wanted) > len(texts) // 2


def test_the_end_of_the_context_ends_the_text_and_so_does_an_end_token(packs: Packs) -> None:
    folder = packed(packs, LINUX, "bytes")
    tokenizer = host(folder)
    prompt = "One day, Tom and his mom went to the store to buy some apples. The man was very kind and gave them"
    ids = tokenizer.encode(prompt)
    assert CONTEXT - 30 < len(ids) < CONTEXT - 15
    golden = list(generate(golden_of(folder), ids, CONTEXT - len(ids) + 1, Sampling(), ()))
    end = golden[7]
    ended = golden[: golden.index(end) + 1]
    first, second = answers(
        packs, folder, text_request(prompt.encode(), 1 << 31), text_request(prompt.encode(), 50, eos=[511, end])
    )
    assert (new_ids(first), text_of(first)) == (golden, tokenizer.decode([*ids, *golden]))
    assert first[-1] == Status(0, CONTEXT)
    assert (new_ids(second), text_of(second)) == (ended, tokenizer.decode([*ids, *ended]))


def test_text_comes_before_its_token_and_the_prompt_first(packs: Packs) -> None:
    (answer,) = answers(packs, packed(packs, LINUX, "bytes"), text_request(b"Once upon a time", 3))
    kinds = [type(one) for one in answer]
    assert kinds[kinds.index(PromptIds) :] == [PromptIds, Text, Token, Text, Token, Text, Token, Status]
    assert set(kinds[: kinds.index(PromptIds)]) == {Text}
    assert text_of(answer[: kinds.index(PromptIds)]) == "Once upon a time"


REFUSALS = {
    "longer than the buffer": (text_request(b"a" * (PROMPT_BYTES + 1), 1), -29),
    "more tokens than the context": (text_request(b"\x01" * CONTEXT, 1), -20),
    "no UTF-8": (text_request(b"a\xff", 1), -28),
    "half a character": (text_request("é".encode()[:1], 1), -28),
    "nothing": (text_request(b"", 1, flags=0), -19),
    "a flag that is none": (text_request(b"a", 1, flags=4), -5),
    "a temperature out of range": (text_request(b"a", 1, temperature=1e9), -24),
    "another application's": (encode("G", bytes(64)), -128),
    "too short": (encode("P", bytes(8)), -128),
    "a length that is not the rest's": (encode("P", bytes(40) + b"\x03\0\0\0\x05\0\0\0abc"), -128),
    "damaged": (text_request(b"abc", 1)[:-1] + b"\0", -128),
}


def test_each_refusal_is_one_status_and_the_next_request_is_answered(packs: Packs) -> None:
    good = text_request(b"a", 1)
    requests = [one for refused, _ in REFUSALS.values() for one in (refused, good)]
    got = answers(packs, packed(packs, LINUX, "bytes"), *requests)
    statuses = [answer[-1].code for answer in got if isinstance(answer[-1], Status)]
    assert statuses == [code for _, wanted in REFUSALS.values() for code in (wanted, 0)]
    assert all(len(new_ids(answer)) == (answer[-1] == Status(0, 2)) for answer in got)


def test_special_tokens_are_text_where_the_request_says_so(packs: Packs) -> None:
    folder = packed(packs, LINUX, "bytes")
    asked, not_asked = answers(packs, folder, text_request(b"a</s>b", 0), text_request(b"a</s>b", 0, flags=AROUND))
    assert (text_of(asked), text_of(not_asked)) == ("ab", "a</s>b")


def test_a_bit_in_the_tables_is_found_at_the_start(packs: Packs, tmp_path: Path) -> None:
    folder = packed(packs, LINUX, "bytes")
    elf = packs.built(folder, "text") / ELF
    copy = tmp_path / "copy"
    shutil.copytree(folder.path, copy)
    tables = next(entry for entry in read_image(folder.path / IMAGE).experts if entry.kind == "tokenizer")
    image = bytearray((copy / IMAGE).read_bytes())
    assert image[tables.offset : tables.offset + tables.bytes] == (copy / "model_tokenizer.bin").read_bytes()
    image[tables.offset + tables.bytes - 1] ^= 1
    (copy / IMAGE).write_bytes(image)
    frames = targets.frames(replace(folder, path=copy), load_board(LINUX), elf, text_request(b"a", 1) + END, 60.0)
    assert [message(frame) for frame in frames] == [Status(-13, 0)]
