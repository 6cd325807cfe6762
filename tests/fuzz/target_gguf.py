# SPDX-License-Identifier: Apache-2.0
"""GGUF files: pairs, tensor infos, counts and blocks spoilt one by one; text and shards too."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from colibri.importers import load
from colibri.importers.gguf.architectures import ARCHITECTURES
from colibri.text.device import for_device
from importers.gguf_files import ARRAY, MIXTRAL, STRING, TYPES, File, Tensor, file_of, mixtral_arrays, pair, text

from .choices import FLOATS, TEXTS, Choices, spoilt_bytes

_SOURCES = Path(__file__).parents[2] / "scripts" / "colibri" / "importers" / "gguf"
_FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_MAX_BYTES = 1 << 18
_SPACE, _BYTES = "\u2581", [f"<0x{b:02X}>" for b in range(3)]
_SCORED = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": ["<unk>", "<s>", *_BYTES, _SPACE, *"abc", "ab", *(f"x{i}" for i in range(30))],
    "tokenizer.ggml.scores": [-float(i) for i in range(40)],
    "tokenizer.ggml.token_type": [2, 3, 6, 6, 6, *[1] * 35],
}
_MERGED = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": [*map(chr, range(0x21, 0x48)), '!"'],
    "tokenizer.ggml.merges": ['! "'],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.add_bos_token": True,
}


@cache
def keys() -> list[str]:
    """Every key that the importer's source names, without the architecture."""
    found = {
        name
        for path in _SOURCES.glob("*.py")
        for name in re.findall(r'"([a-z0-9_]+(?:\.[a-z0-9_]+)*)"', path.read_text())
    }
    return sorted(found)


@cache
def seeds() -> list[File]:
    arrays = mixtral_arrays()
    plain = file_of(MIXTRAL, arrays)
    blocks = file_of(MIXTRAL, [_quantised(t) if len(t.dims) == 2 else t for t in plain.tensors])
    aligned = file_of({**MIXTRAL, "general.alignment": 64}, arrays)
    aligned.alignment = 64
    others = []
    for name in ARCHITECTURES:
        renamed = {key.replace("llama.", f"{name}."): value for key, value in MIXTRAL.items()}
        others.append(file_of({**renamed, "general.architecture": name}, arrays))
    texts = [file_of({**MIXTRAL, **said}, arrays) for said in (_SCORED, _MERGED)]
    return [plain, *texts, blocks, aligned, *others]


def _quantised(t: Tensor) -> Tensor:
    n = math.prod(t.dims)
    return replace(t, type=TYPES["Q8_0"][0], data=(struct.pack("<e", 0.01) + bytes(range(32))) * (n // 32))


def value(c: Choices, kind: int) -> bytes:
    """A value of a type, or nearly."""
    if kind == STRING:
        return text(
            c.pick((*TEXTS, *ARCHITECTURES, "yarn", "linear", "gpt2", "llama")).encode("utf-8", "surrogatepass")
        )
    if kind in (6, 12):
        return struct.pack("<" + _FORMS[kind], c.pick(FLOATS))
    if kind in _FORMS:
        width = struct.calcsize(_FORMS[kind])
        return (c.number() & (1 << 8 * width) - 1).to_bytes(width, "little")
    inner, n = c.below(14), c.below(6)
    claimed = n if c.below(3) else c.number()
    return struct.pack("<IQ", inner, claimed & 2**64 - 1) + b"".join(
        value(c, inner) for _ in range(n if inner != ARRAY else 0)
    )


def spoil_pair(c: Choices, file: File) -> None:
    at = c.below(len(file.pairs))
    key, kind, old = file.pairs[at]
    match c.below(7):
        case 0:
            del file.pairs[at]
        case 1:
            file.pairs[at] = (key, c.below(14), old)
        case 2:
            file.pairs[at] = (key, kind, spoilt_bytes(c, old))
        case 3:
            file.pairs.append((c.pick(file.pairs)[0] if c.below(2) else key, kind, old))
        case 4:
            architecture = c.pick(file.pairs)[0].split(".")[0] if c.below(4) else "tokenizer.ggml"
            new = c.below(14)
            file.pairs.append((f"{architecture}.{c.pick(keys())}", new, value(c, new)))
        case 5:
            file.pairs[at] = pair(key, [c.below(70) for _ in range(1 + c.below(4))])
        case _:
            file.pairs[at] = (key, kind, value(c, kind))


def spoil_tensor(c: Choices, file: File) -> None:
    at = c.below(len(file.tensors))
    old = file.tensors[at]
    match c.below(8):
        case 0:
            del file.tensors[at]
        case 1:
            new = replace(old, dims=tuple(c.number() & 2**64 - 1 for _ in range(c.below(6))))
            file.tensors[at] = new
        case 2:
            file.tensors[at] = replace(old, type=c.below(45))
        case 3:
            file.tensors[at] = replace(old, offset=c.number() & 2**64 - 1)
        case 4:
            file.tensors[at] = replace(old, name=c.pick(file.tensors).name)
        case 5:
            ends = (".weight", ".bias", ".scale", "")
            name = f"blk.{c.below(3)}.{c.pick(keys())}" if c.below(2) else c.pick(keys())
            file.tensors.append(replace(old, name=name[:60] + c.pick(ends)))
        case 6:
            file.tensors[at] = replace(old, dims=tuple(reversed(old.dims)))
        case _:
            kind, n_elems, n_bytes = c.pick(list(TYPES.values()))
            n = min(math.prod(old.dims) // n_elems * n_bytes, _MAX_BYTES)
            pattern = c.take(8).ljust(8, b"\x7e")
            file.tensors[at] = replace(old, type=kind, data=(pattern * (n // 8 + 1))[:n])


def spoil_header(c: Choices, file: File) -> None:
    match c.below(5):
        case 0:
            file.version = c.number() & 2**32 - 1
        case 1:
            file.n_pairs = c.number() & 2**64 - 1
        case 2:
            file.n_tensors = c.number() & 2**64 - 1
        case 3:
            file.alignment = c.pick((8, 16, 32, 64, 4096, 65536))
        case _:
            file.tail = c.take(c.below(70))


def one(c: Choices, folder: Path) -> None:
    seed = c.pick(seeds())
    file = replace(seed, pairs=list(seed.pairs), tensors=list(seed.tensors))
    spoilers: tuple[Callable[[Choices, File], None], ...] = (spoil_pair, spoil_tensor, spoil_header)
    for _ in c.steps():
        if file.pairs and file.tensors:
            c.pick(spoilers)(c, file)
    raw = file.raw()
    for _ in range(c.below(3)):
        raw = spoilt_bytes(c, raw, 4096)
    path = folder / "model.gguf"
    path.write_bytes(raw)
    model = load(path)
    for tensor in model:
        assert tensor.read().shape == tensor.shape
    if model.tokenizer_json is not None:
        for_device(model.tokenizer_json)
