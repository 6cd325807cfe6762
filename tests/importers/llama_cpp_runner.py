# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's answers, by a Python that has llama-cpp-python: a request in JSON on standard input, the answer on standard output.

file    a GGUF file
ids     gives logits: those after each of them
n_new   gives greedy: so many tokens after ids, each the most likely one
texts   gives tokens: the ids of each text, special tokens in it being special
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

import llama_cpp


def run(file: str, ids: list[int], n_new: int) -> dict[str, Any]:
    """One thread, float32 in the cache, no fused attention: what differs is the order of sums."""
    model = llama_cpp.Llama(
        file,
        n_ctx=len(ids) + n_new + 1,
        n_batch=len(ids),
        logits_all=True,
        n_threads=1,
        n_threads_batch=1,
        type_k=llama_cpp.GGML_TYPE_F32,
        type_v=llama_cpp.GGML_TYPE_F32,
    )
    model.eval(ids)
    logits = model.scores[: len(ids)].tolist()
    greedy: list[int] = []
    while len(greedy) < n_new:
        greedy.append(int(model.scores[model.n_tokens - 1].argmax()))
        model.eval([greedy[-1]])
    return {"logits": logits, "greedy": greedy}


def tokenise(file: str, texts: list[str]) -> list[list[int]]:
    """Only the vocabulary is loaded."""
    llama_cpp.llama_backend_init()
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(file.encode(), parameters)
    if not model:
        sys.exit("llama.cpp does not load the vocabulary")
    vocab = llama_cpp.llama_model_get_vocab(model)
    return [_ids(vocab, text.encode()) for text in texts]


def _ids(vocab: Any, text: bytes) -> list[int]:
    room = 2 * len(text) + 8
    found = (ctypes.c_int32 * room)()
    n = llama_cpp.llama_tokenize(vocab, text, len(text), found, room, True, True)
    assert n >= 0
    return list(found[:n])


request = json.load(sys.stdin)
answer: dict[str, Any] = {}
if "ids" in request:
    answer |= run(request["file"], request["ids"], request.get("n_new", 0))
if "texts" in request:
    answer["tokens"] = tokenise(request["file"], request["texts"])
json.dump(answer, sys.stdout)
