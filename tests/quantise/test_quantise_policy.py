# SPDX-License-Identifier: Apache-2.0
"""The grammar of -q: what every spelling means, what it is written as, and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.errors import UsageError
from colibri.quantise import PARTS, Format, Policy, parse_format, part_of
from image.packs import checkpoint

SPELLINGS = ["f32", "bf16", "f16"] + [f"{k}{g}" for k in ("q8", "q4") for g in ("", ":row", ":32", ":64", ":128")]


def formats(text: str) -> dict[str, str]:
    return dict(zip(PARTS, map(str, Policy.parse(text).formats), strict=True))


@pytest.mark.parametrize(
    ("text", "kind", "group", "canonical"),
    [
        ("f32", "f32", 0, "f32"),
        ("bf16", "bf16", 0, "bf16"),
        ("f16", "f16", 0, "f16"),
        ("q8", "q8", 0, "q8"),
        ("q8:row", "q8", 0, "q8"),
        ("q8:32", "q8", 32, "q8:32"),
        ("q8:64", "q8", 64, "q8:64"),
        ("q8:128", "q8", 128, "q8:128"),
        ("q4", "q4", 32, "q4"),
        ("q4:32", "q4", 32, "q4"),
        ("q4:row", "q4", 0, "q4:row"),
        ("q4:64", "q4", 64, "q4:64"),
        ("q4:128", "q4", 128, "q4:128"),
    ],
)
def test_format(text: str, kind: str, group: int, canonical: str) -> None:
    assert parse_format(text) == Format(kind, group)  # type: ignore[arg-type]  # the literals
    assert str(parse_format(text)) == canonical
    assert parse_format(canonical) == parse_format(text)


@pytest.mark.parametrize(
    "text",
    ["", "q", "q5", "Q8", "q8:", "q8:16", "q8:0", "q8:row:32", "q4:256", "f32:32", "f32:", "bf16:row", " q8", "q8 "],
)
def test_format_refused(text: str) -> None:
    for whole in (text, f"default={text}"):
        with pytest.raises(UsageError) as caught:
            Policy.parse(whole)
        assert caught.value.exit_code == 2
        assert f"got '{text}'" in str(caught.value)
        assert caught.value.hint


def test_one_format_is_for_every_part_but_q4_spares_embedding_and_head() -> None:
    assert set(formats("q8:64").values()) == {"q8:64"}
    assert formats("q4:64") == {**dict.fromkeys(PARTS, "q4:64"), "embedding": "q8", "head": "q8"}
    assert set(formats("default=q4").values()) == {"q4"}


def test_parts_override_the_default_in_any_order() -> None:
    expected = {**dict.fromkeys(PARTS, "q8"), "experts": "q4", "head": "f16"}
    for order in itertools.permutations(["default=q8", "experts=q4", "head=f16"]):
        assert formats(",".join(order)) == expected
    assert formats(",".join(f"{p}=f32" for p in PARTS)) == dict.fromkeys(PARTS, "f32")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("router=f32", "got 'router'"),
        ("default=q8,norms=f32", "got 'norms'"),
        ("default=q8,bias=f32", "got 'bias'"),
        ("default=q8,expert=q4", "got 'expert'"),
        ("default=q8,=q4", "got ''"),
        ("default=q8,", "got ''"),
        ("default=q8,,head=q8", "got ''"),
        ("q8,head=q8", "got 'q8'"),
        ("default=q8,head=q8,head=q4", "'head' twice"),
        ("default=q8,default=q4", "'default' twice"),
        ("head=q8", "none for embedding, attention, dense, experts, shared"),
        ("default=", "got ''"),
        ("default=q8=q4", "got 'q8=q4'"),
        ("Default=q8", "got 'Default'"),
        (" default=q8", "got ' default'"),
    ],
)
def test_policy_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Policy.parse(text)
    assert message in str(caught.value)
    assert f"-q {text}" in str(caught.value) or text.split("=")[-1] in str(caught.value)
    assert caught.value.hint


def test_a_part_that_is_never_quantised_says_so() -> None:
    with pytest.raises(UsageError) as caught:
        Policy.parse("default=q8,router=q8")
    assert caught.value.hint == "router, norms and biases are always float32"


def test_a_missing_default_is_offered_as_a_command_that_works() -> None:
    with pytest.raises(UsageError) as caught:
        Policy.parse("experts=q4")
    offered = caught.value.hint.split("-q ")[1]
    assert formats(offered)["experts"] == "q4"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("q8", "q8"),
        ("q8:row", "q8"),
        ("default=q8", "q8"),
        ("q4", "q4"),
        ("default=q4,embedding=q8,head=q8:row", "q4"),
        ("default=q4", "default=q4"),
        ("default=q4:row,head=q8", "default=q4:row,head=q8"),
        ("default=q8,experts=q4:32", "default=q8,experts=q4"),
        ("embedding=f16,default=q8", "default=q8,embedding=f16"),
        ("f32", "f32"),
    ],
)
def test_canonical_spelling(text: str, canonical: str) -> None:
    assert str(Policy.parse(text)) == canonical


@settings(max_examples=300, deadline=None, database=None)
@given(st.lists(st.sampled_from(SPELLINGS), min_size=len(PARTS), max_size=len(PARTS)))
def test_canonical_spelling_reads_back_to_the_same_policy(chosen: list[str]) -> None:
    policy = Policy.parse(",".join(f"{p}={f}" for p, f in zip(PARTS, chosen, strict=True)))
    assert Policy.parse(str(policy)) == policy
    assert str(Policy.parse(str(policy))) == str(policy)


def test_the_longest_spelling_of_a_resolved_policy_fits_the_header() -> None:
    """docs/FORMAT.md: 88 bytes; `shared` is in no model yet and follows attention."""
    from colibri.image.format import FIELDS

    room = next(f.bytes for f in FIELDS if f.name == "quant")
    for name in ("mixtral", "llama"):
        config = checkpoint(name).model.config
        for shift in range(3):
            longest = ["q4:128", "q8:128", "q4:row"]
            items = [f"{p}={longest[(i + shift) % 3]}" for i, p in enumerate(PARTS)]
            assert len(str(Policy.parse(",".join(items)).resolve(config))) <= room


@pytest.mark.parametrize("name", ["mixtral_tied", "llama_tied_rope3"])
def test_a_tied_head_follows_the_embedding(name: str) -> None:
    config = checkpoint(name).model.config
    assert config.tied_head
    for text in ("default=q8,embedding=f16,head=q4", "default=q8,embedding=f16"):
        policy = Policy.parse(text).resolve(config)
        assert str(policy.format_of("embed.weight")) == "f16"
        assert policy.formats[PARTS.index("head")] == policy.formats[PARTS.index("embedding")]
    assert Policy.parse("default=q8,head=q4").resolve(config) == Policy.parse("q8").resolve(config)


def test_an_untied_head_is_its_own_part() -> None:
    policy = Policy.parse("default=q8,embedding=f16,head=q4").resolve(checkpoint("mixtral").model.config)
    assert str(policy.format_of("head.weight")) == "q4"


def test_a_part_the_model_lacks_has_no_say_in_the_spelling() -> None:
    mixtral, llama = (checkpoint(n).model.config for n in ("mixtral", "llama"))
    assert str(Policy.parse("default=q8,dense=q4,shared=f16").resolve(mixtral)) == "q8"
    assert str(Policy.parse("default=q8,experts=q4").resolve(llama)) == "q8"
    assert str(Policy.parse("q4").resolve(mixtral)) == "q4"


def test_router_and_norms_are_float32_whatever_is_asked_for() -> None:
    for name in ("mixtral", "llama"):
        config = checkpoint(name).model.config
        policy = Policy.parse("default=q4").resolve(config)
        for tensor in config.tensor_shapes():
            fixed = "norm" in tensor or "router" in tensor
            assert (part_of(tensor) is None) == fixed
            assert str(policy.format_of(tensor)) == ("f32" if fixed else "q4")


def test_every_part_of_a_tensor_is_the_one_its_name_says() -> None:
    assert part_of("layers.11.experts.7.gate.weight") == "experts"
    assert part_of("layers.11.ffn.down.weight") == "dense"
    assert part_of("layers.0.attn.o.weight") == "attention"
    assert part_of("layers.0.attn_norm.weight") is None
    assert part_of("xlayers.0.attn.o.weight") is None


def test_untying_changes_only_the_head() -> None:
    config = replace(checkpoint("mixtral_tied").model.config, tied_head=False)
    assert str(Policy.parse("default=q8,head=q4").resolve(config)) == "default=q8,head=q4"
