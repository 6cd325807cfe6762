# SPDX-License-Identifier: Apache-2.0
"""The C targets: compiled by clang-19 with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, and what they spoil."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from colibri.text.tables import tables_of
from colibri.text.tokenizer_json import rules_of
from engine.every_axis import EveryAxis
from text.samples import KINDS

ROOT = Path(__file__).parents[2]
FIRMWARE = ROOT / "firmware"
OWN = Path(__file__).parent / "c"
TARGETS = ("engine", "tokenizer_tables", "tokenizer_text")

_SANITIZERS = "fuzzer,address,undefined"
_FLAGS = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-g", "-O2", "-Wall", "-Wextra", "-Werror"]
_FLAGS += ["-ffp-contract=off", "-fno-math-errno", "-mfma"]  # as the engine is built everywhere
_FLAGS += [f"-fsanitize={_SANITIZERS}", "-fno-sanitize-recover=all"]
_SMALL = ("gpt2", "llama 3", "qwen", "llama 2", "metaspace first", "unigram", "unigram first, unknown")


def _engine(folder: Path) -> list[str]:
    """The engine of a model that has every axis, and an image for it."""
    model = EveryAxis()
    (folder / "model_config.h").write_text(model.config)
    (folder / "seed.bin").write_bytes(model.image)
    sources = [p for part in ("engine", "kernels", "kernels/portable") for p in sorted((FIRMWARE / part).glob("*.c"))]
    return [f'-DCOLIBRI_FUZZ_SEED="{folder / "seed.bin"}"', *map(str, sources)]


def _tokenizer(folder: Path) -> list[str]:
    """The tokenizer, and tables of several kinds."""
    (folder / "model_config.h").write_text("")
    names = []
    for i, kind in enumerate(_SMALL):
        path = folder / f"seed-{i}.bin"
        path.write_bytes(tables_of(rules_of(KINDS[kind]().to_str().encode())))
        names.append(json.dumps(str(path)))
    sources = sorted((FIRMWARE / "tokenizer").glob("*.c"))
    return [f"-DCOLIBRI_FUZZ_SEEDS={','.join(names)}", *map(str, sources)]


_PARTS: dict[str, Callable[[Path], list[str]]] = {
    "engine": _engine,
    "tokenizer_tables": _tokenizer,
    "tokenizer_text": _tokenizer,
}


def compiled(target: str, folder: Path) -> Path:
    """The program of a target, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / target
    includes = [f"-I{FIRMWARE / 'include'}", f"-I{FIRMWARE}", f"-I{folder}", f"-I{OWN}"]
    own = str(OWN / f"{target}.c")
    subprocess.run(["clang-19", *_FLAGS, *includes, own, *_PARTS[target](folder), "-o", str(program)], check=True)
    return program
