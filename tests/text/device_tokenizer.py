# SPDX-License-Identifier: Apache-2.0
"""firmware/tokenizer compiled for this machine, behind Python functions."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["-std=c11", "-ffreestanding", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
AROUND, SPECIAL = 1, 2


def compile_library(folder: Path, compiler: str = "gcc", extra: Iterable[str] = ("-O2",)) -> Path:
    """A shared library of the tokenizer; of the model's configuration it only uses the prefix."""
    (folder / "model_config.h").write_text("")
    library = folder / "tokenizer.so"
    sources = sorted((ROOT / "firmware" / "tokenizer").glob("*.c"))
    includes = [f"-I{folder}", f"-I{ROOT / 'firmware' / 'include'}"]
    command = [compiler, *FLAGS, *extra, *includes, "-shared", "-fPIC", *map(str, sources), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


class DeviceTokenizer:
    """One tokenizer's tables and the library that reads them."""

    def __init__(self, library: Path, tables: bytes) -> None:
        self.library = ctypes.CDLL(str(library))
        self.library.colibri_detokenize_bytes.restype = ctypes.c_size_t
        self._tables = np.frombuffer(tables, dtype=np.uint32).copy()
        self._tokenizer = ctypes.c_void_p()
        status = self.library.colibri_tokenizer_init(
            ctypes.byref(self._tokenizer), self._tables.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(tables))
        )
        assert status == 0, status

    def encode(self, text: str | bytes, flags: int = AROUND | SPECIAL, *, max_ids: int | None = None) -> list[int]:
        """Ids; raises ValueError with a negative status."""
        raw = text.encode() if isinstance(text, str) else text
        size = 56 * len(raw) + 64
        workspace = np.zeros(size // 8 + 1, dtype=np.uint64)
        ids = np.zeros(len(raw) + 64 if max_ids is None else max_ids, dtype=np.int32)
        n = self.library.colibri_tokenize(
            ctypes.byref(self._tokenizer),
            raw,
            ctypes.c_size_t(len(raw)),
            flags,
            ids.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(len(ids)),
            workspace.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(size),
        )
        if n < 0:
            raise ValueError(n)
        return [int(i) for i in ids[:n]]

    def pieces(self, ids: Iterable[int]) -> list[bytes]:
        """What each id gives, and last what the end gives."""
        stream = ctypes.create_string_buffer(512)
        assert self.library.colibri_detokenizer_init(stream) == 0
        size = self.library.colibri_detokenize_bytes(ctypes.byref(self._tokenizer))
        text = ctypes.create_string_buffer(size)
        out = []
        for i in [*ids, -1]:
            n = self.library.colibri_detokenize(ctypes.byref(self._tokenizer), stream, i, text, ctypes.c_size_t(size))
            if n < 0:
                raise ValueError(n)
            out.append(text.raw[:n])
        return out

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids."""
        return b"".join(self.pieces(ids)).decode()
