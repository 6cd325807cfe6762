# SPDX-License-Identifier: Apache-2.0
"""A second reader, written from docs/FORMAT.md, finds in model.bin what the golden model computes with."""

from __future__ import annotations

import ast
import hashlib
import zlib
from pathlib import Path

import numpy as np
import pytest

from colibri.boards import KERNEL_SETS, load_board
from colibri.cli.workflow import golden_of
from colibri.folder import Folder
from colibri.image import kernel_layouts
from colibri.quantise import Policy, store
from sampled import sampled

from .format_layouts import LAYOUTS
from .format_reader import Reader
from .packs import DEMO, Packs, checkpoint, settings

MIXED = "embedding=bf16,attention=q8:32,experts=q4,head=f16,default=q8"
DENSE = "embedding=f16,attention=q4:row,dense=q8:64,head=bf16,default=f32"
CASES = [
    *(("mixtral_odd", q) for q in ("f32", "bf16", "f16", "q8", "q8:32", "q8:64", "q8:128", "q4", "q4:row", "q4:64")),
    ("mixtral_odd", MIXED),
    ("mixtral_tied", "q8"),
    ("llama", DENSE),
    ("llama_tied_rope3", "q4:128"),
    ("mistral_swa", "default=q4"),
]


BOARDS = {"portable": "linux-x86_64", "armv7m": "mps2-an385", "armv7em": "mps2-an386", "mve": "mps3-an547"}
"""A board of each kernel set."""
INTEGER = [(name, quant) for name, quant in CASES if "q" in quant]
IN_LAYOUTS = [("portable", *case) for case in CASES]
IN_LAYOUTS += [(kernels, *case) for kernels in BOARDS if kernels != "portable" for case in INTEGER]


def reader(folder: Folder) -> Reader:
    return Reader(folder.path)


def test_reader_is_independent_and_short() -> None:
    for name in ("format_reader.py", "format_layouts.py"):
        text = (Path(__file__).parent / name).read_text()
        assert len(text.splitlines()) <= 180
        for node in ast.walk(ast.parse(text)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            assert not any(m.split(".")[0] in ("colibri", "colibri_sim", "numpy", "image") for m in modules)


def test_every_layout_is_read() -> None:
    assert set(BOARDS) == set(KERNEL_SETS)
    assert set(LAYOUTS) == {layout.id for layout in kernel_layouts.LAYOUTS}


@pytest.mark.parametrize(("kernels", "name", "quant"), sampled(IN_LAYOUTS))
def test_every_tensor_is_read_back_bit_for_bit(packs: Packs, kernels: str, name: str, quant: str) -> None:
    folder = packs.folder(name, quant, BOARDS[kernels])
    assert folder.kernels == kernels
    read = reader(folder)
    model = checkpoint(name).model
    policy = Policy.parse(quant).resolve(model.config)
    expected = set(model.config.tensor_shapes()) | {"rope.inv_freq"}
    assert set(read.blocks) == expected
    for tensor in model.config.tensor_shapes():
        stored = store(model.tensors[tensor], policy.format_of(tensor))
        got = np.array(read.values(tensor), dtype=np.float32)
        assert got.shape == (stored.rows, stored.cols)
        assert np.array_equal(got.view(np.uint32), stored.values().view(np.uint32)), tensor
    inv_freq = np.array(model.config.layers[0].mixer.rope.inv_freq, dtype=np.float32)
    got = np.array(read.values("rope.inv_freq"), dtype=np.float32)
    assert np.array_equal(got.view(np.uint32), inv_freq[None].view(np.uint32))


@pytest.mark.parametrize(("name", "quant"), CASES)
def test_everything_between_the_numbers_is_zero(packs: Packs, name: str, quant: str) -> None:
    """Gaps, row padding and alignment: what no block, header or directory covers."""
    read = reader(packs.folder(name, quant))
    covered = bytearray(len(read.image))
    covered[: 256 + 24 * len(read.experts)] = b"\1" * (256 + 24 * len(read.experts))
    for b in read.blocks.values():
        elements = b.cols * {"f32": 4, "bf16": 2, "f16": 2, "q8": 1}.get(b.kind, 0) or -(-b.cols // 2)
        row_bytes = elements * (-(-b.cols // 8) * 8) // b.cols if b.kind != "q4" else -(-b.cols // 8) * 4
        scales_offset = -(-b.rows * row_bytes // 16) * 16
        for r in range(b.rows):
            start = b.offset + r * row_bytes
            assert not any(covered[start : start + elements]), "overlap"
            covered[start : start + elements] = b"\1" * elements
            if b.kind == "q4" and b.cols % 2:
                assert read.image[start + elements - 1] >> 4 == 0
        scales, n_bytes = b.offset + scales_offset, b.bytes - scales_offset
        assert not any(covered[scales : scales + n_bytes])
        covered[scales : scales + n_bytes] = b"\1" * n_bytes
    vector = read.header["dense_offset"] + read.header["dense_bytes"] - 64
    assert not any(covered[vector : vector + 64])
    covered[vector : vector + 64] = b"\1" * 64
    image = np.frombuffer(read.image, dtype=np.uint8)
    assert not image[np.frombuffer(covered, dtype=np.uint8) == 0].any()


@pytest.mark.parametrize("quant", ["q8", "q8:32", "q4:64", "q4:row"])
@pytest.mark.parametrize("kernels", [kernels for kernels in BOARDS if kernels != "portable"])
def test_padding_of_blocks_is_zero(packs: Packs, kernels: str, quant: str) -> None:
    """What a kernel computes with beyond the last row and column must not matter."""
    read = reader(packs.folder("mixtral_odd", f"default={quant}", BOARDS[kernels]))
    n_padding = 0
    for b in read.blocks.values():
        if b.kind not in ("q8", "q4"):
            continue
        layout = LAYOUTS[b.layout]
        m = memoryview(read.image)[b.offset : b.offset + b.bytes]
        rows, cols = layout.padded(b.kind, b.rows, b.cols)
        padding = [(r, c) for r in range(rows) for c in range(cols) if r >= b.rows or c >= b.cols]
        for r, c in padding:
            q, scale, _ = layout.element(m, b.kind, b.group, b.rows, b.cols, r, c)
            assert q == 0
            assert r < b.rows or scale == 0.0
        n_padding += len(padding)
    assert n_padding > 0


@pytest.mark.parametrize("name", ["mixtral_odd", "llama"])
def test_header_says_what_was_packed(packs: Packs, name: str) -> None:
    folder = packs.folder(name, "q8:32")
    read, model = reader(folder), checkpoint(name).model
    c, h = model.config, reader(folder).header
    router = c.layers[0].ffn.router
    assert (h["n_layers"], h["hidden_size"], h["vocab_size"], h["max_seq"]) == (
        len(c.layers),
        c.hidden_size,
        c.vocab_size,
        c.max_seq,
    )
    assert (h["n_experts"], h["top_k"]) == ((router.n_experts, router.top_k) if router else (0, 0))
    assert h["quant"].rstrip(b"\0") == b"q8:32"
    assert h["name"].rstrip(b"\0") == name.encode()
    assert h["source_sha256"].hex() == model.source_sha256
    assert hashlib.sha256(read.image).hexdigest() == folder.manifest["image"]["sha256"]


@pytest.mark.parametrize("name", ["mixtral_odd", "llama"])
def test_config_hash_is_that_of_the_header_text(packs: Packs, name: str) -> None:
    """docs/FORMAT.md 4: the #define lines from COLIBRI_FORMAT_VERSION to COLIBRI_MATRICES."""
    folder = packs.folder(name, "q8")
    lines = (folder.path / "model_config.h").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("#define COLIBRI_FORMAT_VERSION "))
    last = next(i for i, line in enumerate(lines) if line.startswith("#define COLIBRI_MATRICES "))
    digest = hashlib.sha256("\n".join(lines[first : last + 1]).encode()).digest()[:16]
    assert reader(folder).header["config_hash"] == digest
    words = ", ".join(f"0x{int.from_bytes(digest[i : i + 4], 'little'):08X}u" for i in range(0, 16, 4))
    assert f"#define COLIBRI_CONFIG_HASH_WORDS {{ {words} }}" in lines


@pytest.mark.parametrize(("name", "max_seq"), [("mixtral_odd", None), ("llama", None), ("mixtral", 1), ("mixtral", 7)])
def test_the_self_test_vector_is_the_golden_models_answer(packs: Packs, name: str, max_seq: int | None) -> None:
    folder = packs.folder(name, "q8", ids=(1,), max_seq=max_seq)
    vector = reader(folder).selftest
    n = min(8, max_seq or 8)
    ids, crcs = list(vector[:n]), list(vector[8 : 8 + n])
    assert list(vector[n:8]) == [-1] * (8 - n)
    assert list(vector[8 + n :]) == [0] * (8 - n)
    logits = golden_of(folder).forward(ids).logits  # one call, where the vector was made token by token
    assert crcs == [zlib.crc32(row.astype("<f4").tobytes()) for row in logits]
    assert len(set(crcs)) == n


def test_a_vector_ends_where_a_value_leaves_the_range(packs: Packs) -> None:
    def overflowing(tensors: dict[str, np.ndarray]) -> None:
        """The fourth token alone has something in the first element, which the first norm makes too large."""
        embedding = tensors["model.embed_tokens.weight"]
        embedding[:, 0] = 0
        embedding[whole.selftest[3]] = np.eye(1, embedding.shape[1])
        tensors["model.layers.0.input_layernorm.weight"][0] = 2.0**49

    whole = reader(packs.folder("mixtral", "f32"))
    assert whole.selftest[3] not in whole.selftest[:3]
    folder = packs.pack(packs.doctored("mixtral", overflowing), settings("f32"))
    vector = reader(folder).selftest
    assert vector[:3] == whole.selftest[:3]
    assert vector[3:8] == (-1,) * 5
    assert vector[11:] == (0,) * 5


def test_tensor_hashes_of_the_manifest_are_of_the_canonical_form(packs: Packs) -> None:
    folder = packs.folder("mixtral_odd", MIXED)
    model = checkpoint("mixtral_odd").model
    policy = Policy.parse(MIXED).resolve(model.config)
    for entry in folder.manifest["tensors"]:
        if entry["name"] != "rope.inv_freq":
            stored = store(model.tensors[entry["name"]], policy.format_of(entry["name"]))
            assert entry["sha256"] == stored.sha256()


def test_other_weights_of_the_same_shape_have_the_same_configuration(packs: Packs) -> None:
    one, other = packs.folder("mixtral", "q8"), packs.folder("mixtral_bf16", "q8")
    assert one.manifest["config_hash"] == other.manifest["config_hash"]
    assert one.manifest["image"]["sha256"] != other.manifest["image"]["sha256"]
    assert packs.folder("mixtral", "q8:32").manifest["config_hash"] != one.manifest["config_hash"]


@pytest.mark.parametrize("align", ["line", "sector", 16])
def test_the_tokenizer_is_the_last_block_and_moves_nothing(align: str | int, packs: Packs) -> None:
    board = "mps3-an547"
    without = packs.folder(DEMO, board=board, expert_align=align)
    folder = packs.folder(DEMO, board=board, expert_align=align, text_bytes=300)
    reader, plain = Reader(folder.path), Reader(without.path)
    assert plain.tokenizer is None
    assert reader.tokenizer == (folder.path / "model_tokenizer.bin").read_bytes()
    assert reader.tokenizer[:4] == b"CBTK"
    assert reader.header["directory_entries"] == plain.header["directory_entries"] + 1
    assert reader.experts == plain.experts
    last_offset, last_bytes, *_ = plain.experts[-1]
    end = last_offset + last_bytes
    assert reader.image[reader.header["header_bytes"] : end] == plain.image[plain.header["header_bytes"] : end]
    at = reader.image.index(reader.tokenizer, end)
    aligned = load_board(board).alignment
    unit = {"line": aligned.cache_line_bytes, "sector": aligned.erase_sector_bytes}.get(str(align), 16)
    assert at == -(-end // unit) * unit
    config = (folder.path / "model_config.h").read_text()
    assert f"#define COLIBRI_TOKENIZER_AT {at}u\n" in config
    assert f"#define COLIBRI_TOKENIZER_BYTES {len(reader.tokenizer)}u\n" in config
    assert "COLIBRI_TOKENIZER" not in (without.path / "model_config.h").read_text()
