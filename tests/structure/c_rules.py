# SPDX-License-Identifier: Apache-2.0
"""Which C file may include which, and which words it may not know: the direction of dependence, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
FREESTANDING = {"float.h", "limits.h", "stdalign.h", "stdbool.h", "stddef.h", "stdint.h", "stdnoreturn.h"}

ISA_MACRO = r"\b__(ARM|arm|aarch64|AARCH64|riscv|x86_64|i386|SSE|AVX|FMA|thumb)\w*"
MODEL_MACRO = (
    r"\bCOLIBRI_(VOCAB|HIDDEN|N_LAYERS|N_HEADS|N_KV|HEAD_DIM|MAX_|N_EXPERTS|TOP_K|KV_|KIND_|MATRI|LAYER_|NORM_|ROUTER_|SHAPE_|STATE_)\w*"
    r"|\bcolibri_(model|state|matrix|forward|step|init|sample)\b\w*"
)
BOARD_WORD = r"\b(mps\d|an\d{3}|cmsdk|CMSDK|BOARD_)\w*"


@dataclass(frozen=True)
class Rule:
    """Files under `folder`: the project's files they may include (patterns), system headers, words they may not hold."""

    folder: str
    may_include: tuple[str, ...]
    system: frozenset[str] = frozenset(FREESTANDING)
    any_system: bool = False
    never: dict[str, str] = field(default_factory=dict)
    except_in: tuple[str, ...] = ()


_PUBLIC = "include/colibri/*.h"
RULES = (
    Rule("include", (_PUBLIC, "model_config.h"), never={"an instruction set": ISA_MACRO, "a board": BOARD_WORD}),
    Rule(
        "engine",
        ("engine/*.h", "kernels/kernels.h", "kernels/arith.h", "kernels/functions.h", _PUBLIC),
        never={"an instruction set": ISA_MACRO, "a board": BOARD_WORD},
    ),
    Rule(
        "kernels",
        # assembly includes what config.h includes for C
        ("kernels/*.h", "include/colibri/config.h", "include/colibri/names.h", "model_config.h"),
        never={"a board": BOARD_WORD, "a model": r"\bcolibri_(model|state)_t\b"},
    ),
    Rule(
        "tokenizer",
        ("tokenizer/*.h", "include/colibri/tokenizer.h"),
        never={"an instruction set": ISA_MACRO, "a board": BOARD_WORD, "a model": MODEL_MACRO},
    ),
    Rule("arch", ("arch/*.h", "include/colibri/port.h"), never={"a model": MODEL_MACRO}),
    Rule("boards", ("boards/*.h", "arch/*.h", "include/colibri/port.h"), never={"a model": MODEL_MACRO}),
    # kernels without an engine
    Rule(
        "apps/kernels",
        ("kernels/kernels.h", "arch/frames.h", _PUBLIC),
        never={"a board": BOARD_WORD, "a model": MODEL_MACRO},
    ),
    Rule(
        "apps", ("apps/*.h", "arch/frames.h", _PUBLIC), never={"a board": BOARD_WORD, "an instruction set": ISA_MACRO}
    ),
    # what `colibri export-c` adds to the engine: its example is a hosted program
    Rule(
        "export",
        ("export/*.h", "include/colibri/colibri.h", "include/colibri/port.h"),
        system=frozenset({*FREESTANDING, "stdio.h", "stdlib.h"}),
        never={"a board": BOARD_WORD, "an instruction set": ISA_MACRO},
    ),
)
ONLY_IN: dict[str, tuple[str, ...]] = {
    # one place computes a block's address
    r"\bCOLIBRI_LAYER_BLOCKS_AT\b": ("engine/block.c",),
    r"\bCOLIBRI_LAYER_ATTN_EXPERTS_AT\b": ("engine/mixture.c",),
    r"\bcolibri_port_\w+": ("engine/forward.c", "include/*", "arch/*", "boards/*", "apps/*", "export/*"),
    r"\b(malloc|calloc|realloc|free|alloca|setjmp|longjmp|rand|exit)\s*\(": (),
    r"\bprintf\s*\(": ("export/main.c",),
    r"\bdouble\b": (),
}
_INSTRUCTION_SETS = "armv7m armv7em mve neon riscv rvv x86"


def violations(firmware: Path) -> list[str]:
    """Every include the wrong way and every word in the wrong place, as `file:line: what`."""
    found = []
    for path in sorted([*firmware.rglob("*.c"), *firmware.rglob("*.h")]):
        name = path.relative_to(firmware).as_posix()
        text = path.read_text()
        code = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        rule = next((r for r in RULES if name.startswith(r.folder + "/")), None)
        problems = [*(_includes(path, firmware, name, code, rule) if rule else [(0, "is in a folder without a rule")])]
        for at, problem in [*problems, *_words(name, code, rule)]:
            found.append(f"{name}:{code.count(chr(10), 0, at) + 1}: {problem}")
    return found


def _includes(path: Path, firmware: Path, name: str, code: str, rule: Rule) -> Iterator[tuple[int, str]]:
    for match in _INCLUDE.finditer(code):
        target = match[2]
        resolved = _resolve(path, firmware, target)
        if resolved is None:
            if target not in rule.system and target != "model_config.h":
                yield match.start(), f"includes the system's {target}"
            if target == "model_config.h" and target not in rule.may_include:
                yield match.start(), "includes model_config.h"
        elif not any(fnmatch(resolved, pattern) for pattern in rule.may_include):
            yield match.start(), f"includes {resolved}"


def _resolve(path: Path, firmware: Path, target: str) -> str | None:
    for folder in (path.parent, firmware / "include", firmware):
        candidate = (folder / target).resolve()
        if candidate.is_file() and candidate.is_relative_to(firmware.resolve()):
            return candidate.relative_to(firmware.resolve()).as_posix()
    return None


def _words(name: str, code: str, rule: Rule | None) -> Iterator[tuple[int, str]]:
    code = _INCLUDE.sub(lambda m: " " * len(m[0]), code)
    if rule is not None:
        for what, pattern in rule.never.items():
            yield from ((m.start(), f"knows {what}: {m[0]}") for m in re.finditer(pattern, code))
    free = (*(f"kernels/{s}/*" for s in _INSTRUCTION_SETS.split()), "kernels/isa.h", "kernels/select.c")
    if name.startswith("kernels/") and not any(fnmatch(name, pattern) for pattern in free):
        yield from ((m.start(), f"tests an instruction set: {m[0]}") for m in re.finditer(ISA_MACRO, code))
    for pattern, where in ONLY_IN.items():
        if not any(fnmatch(name, allowed) for allowed in where):
            yield from ((m.start(), f"uses {m[0]}") for m in re.finditer(pattern, code))
