# SPDX-License-Identifier: Apache-2.0
"""The tokenizer.bin of llama2.c: scores and texts of SentencePiece BPE, as a tokenizer.json.

int32 longest text, then for each token float32 score, int32 bytes, the bytes (spaces are spaces). Tokens 0 to 2 are unknown,
begin and end; 3 to 258 are the bytes.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

from colibri.errors import CheckpointError
from colibri.importers.files import read_whole
from colibri.importers.folder import open_folder
from colibri.importers.text import place
from colibri.text.rules import VISIBLE_SPACE, Unsupported
from colibri.text.scored import Kind, Piece, tokenizer_json

MAX_BYTES = 64 << 20
_FIRST_BYTE, _N_BYTES = 3, 256
_SPECIAL = (("<unk>", Kind.UNKNOWN), ("<s>", Kind.CONTROL), ("</s>", Kind.CONTROL))
_ENTRY = struct.Struct("<fi")


def find_tokenizer(checkpoint: Path, vocab_size: int) -> bytes | None:
    """The tokenizer.json of the tok*.bin of that vocabulary size in the checkpoint's folder; None where there is none.

    Raises CheckpointError where more than one fits: which is meant cannot be known.
    """
    folder = open_folder(checkpoint.parent)
    found = []
    for name in folder.names():
        if name.startswith("tok") and name.endswith(".bin") and name != checkpoint.name:
            pieces = read_pieces(read_whole(folder.file(name), MAX_BYTES), vocab_size)
            if pieces is not None:
                found.append((name, pieces))
    if len(found) > 1:
        raise CheckpointError(
            place(folder.path),
            expected=f"one tokenizer of {vocab_size} tokens",
            got=", ".join(name for name, _ in found),
            hint="leave only the checkpoint's own tokenizer beside it",
        )
    if not found:
        return None
    try:
        return tokenizer_json(found[0][1], unigram=False, prefix=True, before=(1,))
    except Unsupported as error:
        raise CheckpointError(
            place(folder.file(found[0][0])),
            expected="a tokenizer of llama2.c",
            got=str(error),
            hint="take its own file",
        ) from None


def read_pieces(raw: bytes, vocab_size: int) -> list[Piece] | None:
    """The tokens of a file that has exactly `vocab_size` of them, otherwise None."""
    pieces: list[Piece] = []
    at = 4
    while at + _ENTRY.size <= len(raw) and len(pieces) <= vocab_size:
        score, n = _ENTRY.unpack_from(raw, at)
        at += _ENTRY.size
        if not 0 <= n <= len(raw) - at or not math.isfinite(score):
            return None
        pieces.append(_piece(len(pieces), score, raw[at : at + n]))
        at += n
    return pieces if len(pieces) == vocab_size and at == len(raw) else None


def _piece(i: int, score: float, text: bytes) -> Piece:
    if i < len(_SPECIAL):
        return Piece(_SPECIAL[i][0], score, _SPECIAL[i][1])
    if i < _FIRST_BYTE + _N_BYTES:
        return Piece(f"<0x{i - _FIRST_BYTE:02X}>", score, Kind.BYTE)
    return Piece(text.decode("utf-8", "replace").replace(" ", VISIBLE_SPACE), score)
