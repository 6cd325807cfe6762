# SPDX-License-Identifier: Apache-2.0
"""Exported files in llama.cpp: it loads them, computes the golden model's logits, chooses its tokens, cuts texts as we do.

llama.cpp adds float32 numbers in another order, and divides weights of experts by a sum that it keeps from zero; so logits are
held to a bound, and the most likely token where the two best differ by more than twice the bound.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from exportable import MODELS, ROOT
from gguf_files import I32, MIXTRAL, File, H, file_of, mixtral_arrays
from tokenizers import models, pre_tokenizers, trainers

from colibri.export.gguf import Type, export_gguf
from colibri.importers import load
from colibri.model import Model
from colibri.quantise import Policy, store
from colibri.text.pretokenizers import PRETOKENIZERS
from colibri.tokenizer import Tokenizer
from colibri_sim.golden import GoldenModel

RUNNER = Path(__file__).with_name("llama_cpp_runner.py")
PYTHON = os.environ.get("COLIBRI_LLAMA_CPP_PYTHON") or sys.executable
pytestmark = pytest.mark.skipif(
    sys.executable == PYTHON and importlib.util.find_spec("llama_cpp") is None,
    reason="needs llama-cpp-python: set COLIBRI_LLAMA_CPP_PYTHON to a Python that has it",
)
STORIES = ROOT / "weights" / "stories-moe-3m"
IDS = [1, 17, 80, 4, 55, 9, 31, 77, 2, 60, 33, 94, 12, 12, 5, 71]
# Of the largest logit, and how many of the positions may be past it: llama.cpp multiplies f16 by f16, and q8_0 by activations
# that it rounds to q8_0, so that it may choose another expert where two are all but equal.
BOUND: dict[Type, float] = {"f32": 1e-5, "f16": 5e-4, "q8_0": 2e-2}
PAST: dict[Type, float] = {"f32": 0.0, "f16": 0.05, "q8_0": 0.05}
N_NEW = 64
TEXTS = (
    "Once upon a time, there was a little dog named Tim.",
    "  two  spaces\n\n\ttab, 12345 and 3.14; don't I'LL \u00fc\u00e9\u00df \u20ac \u65e5\u672c\u8a9e \U0001f600",
    "</s>x<s> <unk>",
    "",
)


def asked(file: Path, **request: Any) -> dict[str, Any]:
    """What llama.cpp answers; where it does not, the test fails with its words."""
    run = subprocess.run(
        [PYTHON, RUNNER],
        input=json.dumps({"file": str(file), **request}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def golden(model: Model) -> GoldenModel:
    policy = Policy.parse("f32").resolve(model.config)
    return GoldenModel(model.config, cache(lambda n: store(model.tensors[n], policy.format_of(n))))


def compare(found: np.ndarray, expected: np.ndarray, type_: Type = "f32") -> int:
    """Hold logits [positions, vocabulary] against each other; return how many positions have a clear winner."""
    size = BOUND[type_] * np.abs(expected).max()
    near = np.abs(found - expected).max(axis=-1) <= size
    assert np.mean(~near) <= PAST[type_]
    best = np.sort(expected, axis=-1)[:, -2:]
    clear = near & (best[:, 1] - best[:, 0] > 2 * size)
    assert np.array_equal(found.argmax(axis=-1)[clear], expected.argmax(axis=-1)[clear])
    return int(clear.sum())


@pytest.mark.parametrize("name", MODELS)
def test_it_computes_the_models_logits(name: str, tmp_path: Path) -> None:
    _, make = MODELS[name]
    model, path = make(), tmp_path / "out.gguf"
    export_gguf(model, path)
    found = np.array(asked(path, ids=IDS)["logits"], np.float32)
    assert compare(found, golden(model).forward(IDS).logits) >= len(IDS) - 2


@pytest.mark.parametrize("type_", BOUND)
def test_it_continues_a_story_with_the_same_tokens(type_: Type, tmp_path: Path) -> None:
    path = tmp_path / "out.gguf"
    export_gguf(load(STORIES), path, type_)
    model = load(path)
    assert model.tokenizer_json is not None
    tokenizer = Tokenizer(model.tokenizer_json, "")
    prompt = tokenizer.encode("Once upon a time")
    assert asked(path, texts=TEXTS)["tokens"] == [tokenizer.encode(text) for text in TEXTS]
    ids = prompt.copy()
    reference = golden(model)
    logits = reference.forward(prompt).logits
    while len(ids) < len(prompt) + N_NEW:
        ids.append(int(logits[-1].argmax()))
        logits = np.vstack([logits, reference.forward(ids[-1:]).logits])
    assert compare(np.array(asked(path, ids=ids)["logits"], np.float32), logits, type_) >= N_NEW // 2
    assert asked(path, ids=prompt, n_new=N_NEW)["greedy"] == ids[len(prompt) :]


ALPHABET = pre_tokenizers.ByteLevel.alphabet()
CONTROL, NORMAL = 3, 1


@cache
def byte_level() -> tuple[list[str], list[str]]:
    """Tokens and merges, trained on these texts with nothing cut, so that only the rules of cutting keep words apart."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=["<s>", "</s>"], initial_alphabet=ALPHABET, show_progress=False
    )
    readme = (STORIES / "README.md").read_text("utf-8").splitlines()
    tokenizer.train_from_iterator([*readme, *TEXTS * 9], trainer)
    document = json.loads(tokenizer.to_str())["model"]
    return sorted(document["vocab"], key=document["vocab"].__getitem__), [" ".join(m) for m in document["merges"]]


def file_with(pre: str) -> File:
    tokens, merges = byte_level()
    rows = np.zeros((len(tokens), H), np.float32)
    file = file_of(MIXTRAL, {**mixtral_arrays(), "token_embd.weight": rows, "output.weight": rows})
    kinds = [CONTROL if t in ("<s>", "</s>") else NORMAL for t in tokens]
    pairs: dict[str, Any] = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "merges": merges,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    for key, value in pairs.items():
        file = file.with_pair(f"tokenizer.ggml.{key}", value)
    return file.with_pair("tokenizer.ggml.token_type", kinds, I32)


POOLS = (
    "abcdefghij 'stremvld",
    "ABCDEF  \t\n\r\u00a0\u3000",
    "0123456789\u0663",
    ".,;:!?'\"-_/()<>[]",
    "\u00e9\u00fc\u00df\u0301\u65e5\u672c\u306e\ud55c\U0001f600",
)


def random_texts(n: int) -> list[str]:
    rng = random.Random(5)
    return ["".join(rng.choice(rng.choice(POOLS)) for _ in range(rng.randint(1, 40))) for _ in range(n)]


@pytest.mark.parametrize("pre", PRETOKENIZERS)
def test_it_cuts_texts_as_we_do(pre: str, tmp_path: Path) -> None:
    """By the file's own name for the rules, and by the one that export gives them."""
    path, again = tmp_path / "model.gguf", tmp_path / "again.gguf"
    path.write_bytes(file_with(pre).raw())
    model = load(path)
    assert model.tokenizer_json is not None
    assert export_gguf(model, again).no_text is None
    tokenizer, texts = Tokenizer(model.tokenizer_json, ""), [*TEXTS, *random_texts(300)]
    ours = [tokenizer.encode(text) for text in texts]
    for file in (path, again):
        theirs = asked(file, texts=texts)["tokens"]
        wrong = [(text, *ids) for text, *ids in zip(texts, ours, theirs, strict=True) if ids[0] != ids[1]]
        assert not wrong, f"{len(wrong)} of {len(texts)}: {wrong[:3]}"
