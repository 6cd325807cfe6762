# SPDX-License-Identifier: Apache-2.0
"""The device's tokenizer gives the ids and the text of the tokenizers package, and of sentencepiece."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
import sentencepiece
from tokenizers import Tokenizer

from colibri.text import sentencepiece as tokenizer_model
from colibri.text import tokenizer_json
from colibri.text.tables import tables_of

from .device_tokenizer import AROUND, DeviceTokenizer, compile_library
from .samples import CORPUS, KINDS, random_text

N_TEXTS = 900
SHIPPED = sorted((Path(__file__).resolve().parents[2] / "weights").glob("*/tokenizer.json"))


@pytest.fixture(scope="module", params=["gcc", "clang-19"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    sanitize = ["-fsanitize=undefined", "-fno-sanitize-recover=all"] if request.param == "gcc" else []
    return compile_library(tmp_path_factory.mktemp("tokenizer"), request.param, ["-O1", *sanitize])


def same(t: Tokenizer, library: Path, seed: str) -> None:
    device = DeviceTokenizer(library, tables_of(tokenizer_json.rules_of(t.to_str().encode())))
    rng = random.Random(seed)
    vocab = t.get_vocab_size()
    byte_tokens = [i for i in (t.token_to_id(f"<0x{b:02X}>") for b in range(256)) if i is not None]
    for turn in range(N_TEXTS):
        text = random_text(rng)
        ids = t.encode(text).ids
        assert device.encode(text) == ids, repr(text)
        if turn % 3 == 1:
            ids = [rng.choice([*ids, rng.randrange(vocab)]) for _ in range(rng.randint(0, 12))]
        elif turn % 3 == 2 and byte_tokens:
            ids = [rng.choice(byte_tokens) for _ in range(rng.randint(0, 9))]
        pieces = device.pieces(ids)
        assert "".join(piece.decode() for piece in pieces) == t.decode(ids), ids
    long = "".join(CORPUS)
    assert device.encode(long) == t.encode(long).ids
    assert device.decode(t.encode(long).ids) == t.decode(t.encode(long).ids)


@pytest.mark.parametrize("kind", KINDS)
def test_device_gives_the_ids_and_the_text_of_tokenizers(kind: str, library: Path) -> None:
    same(KINDS[kind](), library, kind)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_shipped_tokenizers(path: Path, library: Path) -> None:
    same(Tokenizer.from_file(str(path)), library, path.parent.name)


@pytest.mark.parametrize("fallback", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_device_gives_the_ids_and_the_text_of_sentencepiece(kind: str, fallback: bool, library: Path) -> None:
    model = io.BytesIO()
    lines = [line for line in CORPUS if line.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=kind,
        vocab_size=480,
        byte_fallback=fallback,
        character_coverage=0.99,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    reference = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    converted = tokenizer_model.convert(model.getvalue(), before=(reference.bos_id(),))
    host = Tokenizer.from_str(converted.decode())
    device = DeviceTokenizer(library, tables_of(tokenizer_json.rules_of(converted)))
    rng = random.Random(kind)
    for _ in range(N_TEXTS):
        text = random_text(rng)
        for special in (
            "<s>",
            "</s>",
            "<unk>",
            "\x00",
            "<0x41>",
        ):  # where the two packages differ: we follow tokenizers
            text = text.replace(special, "")
        ids = [reference.bos_id(), *reference.encode(text)]
        assert device.encode(text) == ids, repr(text)
        assert host.encode(text).ids == ids, repr(text)
        known = [i for i in ids if i != reference.unk_id()]
        assert device.decode(ids) == host.decode(ids) == reference.decode(known), ids


def test_special_tokens_are_text_unless_asked_for(library: Path) -> None:
    t = KINDS["gpt2"]()
    device = DeviceTokenizer(library, tables_of(tokenizer_json.rules_of(t.to_str().encode())))
    end = t.token_to_id("<|end|>")
    assert end in device.encode("a<|end|>b")
    assert end not in device.encode("a<|end|>b", AROUND)
    assert device.decode(device.encode("a<|end|>b", AROUND)) == "a<|end|>b"


@pytest.mark.parametrize(
    "text",
    [
        b"\xff",
        b"\x80",
        b"\xc1\x81",
        b"a\xe2\x82",
        b"\xe0\x9f\xbf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf0\x8f\xbf\xbf",
    ],
)
def test_text_that_is_no_utf8_is_refused(text: bytes, library: Path) -> None:
    device = DeviceTokenizer(library, tables_of(tokenizer_json.rules_of(SHIPPED[0].read_bytes())))
    with pytest.raises(UnicodeDecodeError):
        text.decode()
    with pytest.raises(ValueError, match="-28"):
        device.encode(text)


def test_every_buffer_that_is_too_small_is_refused_and_none_is_overrun(library: Path) -> None:
    t = KINDS["llama 2"]()
    device = DeviceTokenizer(library, tables_of(tokenizer_json.rules_of(t.to_str().encode())))
    text = "Once upon a time 日本 <s>"
    ids = t.encode(text).ids
    for size in range(len(ids) + 1):
        if size < len(ids):
            with pytest.raises(ValueError, match="-29"):
                device.encode(text, max_ids=size)
        else:
            assert device.encode(text, max_ids=size) == ids


def test_tables_that_are_cut_or_of_another_kind_are_refused(library: Path) -> None:
    tables = tables_of(tokenizer_json.rules_of(SHIPPED[0].read_bytes()))
    for damaged in (
        b"XXXX" + tables[4:],
        tables[:4] + b"\x02" + tables[5:],
        tables[:-16],
        tables[:16] + b"\xff" * 4 + tables[20:],
    ):
        with pytest.raises(AssertionError):
            DeviceTokenizer(library, damaged)
