# SPDX-License-Identifier: Apache-2.0
"""The plan against counts made without it: parts, bytes and multiply-accumulates per token, regions, remedies."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.boards import Board, load_board
from colibri.errors import DoesNotFit, UsageError
from colibri.layout.plan import Plan, make_plan, require_fit
from colibri.layout.statics import app_array_bytes
from colibri.model import ModelConfig
from colibri.quantise import Policy
from colibri_sim.golden.trace import trace_names
from image import packs as p

from . import counts

QUANTS = ("f32", "bf16", "q8", "q8:32", "q4", "q4:row", "default=q8,embedding=f16,experts=q4:128,attention=bf16")
MODELS = ("mixtral_odd", "llama_tied_rope3", "mistral_swa", "gpt_oss", "jetmoe", "deepseek_v2", "lfm2_moe", p.DEMO)
BOARDS = ("linux-x86_64", "mps2-an385", "mps2-an386", "mps3-an547")


def config_of(name: str) -> ModelConfig:
    return p.checkpoint(name).model.config


def plan_of(name: str, quant: str, board: str | Board = "mps3-an547", **others: Any) -> Plan:
    target = load_board(board) if isinstance(board, str) else board
    return make_plan(config_of(name), target, p.settings(quant, **others))


@pytest.mark.parametrize("quant", QUANTS)
@pytest.mark.parametrize("name", MODELS)
def test_flash_by_part(name: str, quant: str) -> None:
    for align in (16, 64, 4096):
        plan = plan_of(name, quant, expert_align=align)
        parts = {n: part.bytes for n, part in plan.flash.items()}
        assert sum(n for part, n in parts.items() if part != "code") == plan.layout.image_bytes
        expected: dict[str, int] = {}
        policy = Policy.parse(quant).resolve(plan.config)
        for tensor, size in counts.sizes(plan.config, policy).items():
            part = counts.part_of(tensor)
            expected[part] = expected.get(part, 0) + size.information
        expected["tables"] += 64  # the self-test's vector
        assert {part: n for part, n in parts.items() if part not in ("header", "padding", "code")} == expected
        assert parts["header"] == 256 + 24 * counts.n_blocks(plan.config)
        assert parts["padding"] >= 0
        assert {n: part.kind for n, part in plan.flash.items()} == {
            n: "bound" if n == "code" else "exact" for n in plan.flash
        }


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("quant", QUANTS)
@pytest.mark.parametrize("name", MODELS)
def test_macs_and_bytes_read_per_token(name: str, quant: str, board: str) -> None:
    plan = plan_of(name, quant, board)
    policy = Policy.parse(quant).resolve(plan.config)
    assert plan.macs_per_token == counts.macs_per_token(plan.config, policy)
    assert plan.weight_bytes_read_per_token == counts.bytes_read_per_token(
        plan.config, policy, load_board(board).kernels
    )


def test_macs_of_the_demo_by_hand() -> None:
    """From its config.json alone: 5 matrices and a router a layer, two experts, the head."""
    import json

    c = json.loads((p.path_of(p.DEMO) / "config.json").read_text())
    h, width, k = c["hidden_size"], c["intermediate_size"], c["num_experts_per_tok"]
    d = c.get("head_dim") or h // c["num_attention_heads"]
    q, kv = c["num_attention_heads"] * d, c["num_key_value_heads"] * d
    layer = 2 * h * q + 2 * h * kv + h * c["num_local_experts"] + 3 * k * h * width
    assert plan_of(p.DEMO, "q8").macs_per_token == c["num_hidden_layers"] * layer + h * c["vocab_size"]


@pytest.mark.parametrize("kv", ["f32", "f16", "q8"])
@pytest.mark.parametrize("name", MODELS)
def test_ram_by_part(name: str, kv: str) -> None:
    board = load_board("mps3-an547")
    plan = plan_of(name, "q8", kv=kv)
    c = plan.config
    assert plan.ram["kv_cache"].bytes == counts.cached_bytes(c, kv)
    assert plan.ram["logits"].bytes == 4 * c.vocab_size
    assert plan.ram["stack"].bytes == board.stack["generate"] + board.stack["fault"]
    assert plan.ram["kv_cache"].bytes + plan.ram["activations"].bytes == plan.state.bytes
    assert {n for n, part in plan.ram.items() if part.kind == "bound"} == {"statics", "stack"}


@pytest.mark.parametrize("name", MODELS)
def test_arrays_of_the_applications(name: str) -> None:
    config = config_of(name)
    ids, trace = 4 * config.max_seq, 4 * len(trace_names(config))
    assert app_array_bytes(config) == {"generate": 0, "text": 0, "verify": ids + trace, "bench": ids}


@pytest.mark.parametrize("board", BOARDS)
def test_json_holds_the_contract_and_adds_up(board: str) -> None:
    document = plan_of("mixtral_odd", "q8", board).to_json()
    assert document["fits"] is True
    for memory in ("flash", "ram"):
        assert document[memory]["total"] == sum(part["bytes"] for part in document[memory]["parts"].values())
    if board == "linux-x86_64":
        assert document["regions"] == []
        return
    used = sum(region["used"] for region in document["regions"])
    assert used == document["flash"]["total"] + document["ram"]["total"]
    assert all(set(r) == {"name", "origin", "length", "used"} for r in document["regions"])


def test_weights_go_to_the_first_region_that_holds_them() -> None:
    board = load_board("mps3-an547")
    small, large = board.region("qspi"), board.region("ddr")
    assert plan_of("mixtral_odd", "q8").weights_address == small.origin
    tiny = replace(small, length_bytes=0x10000)
    shrunk = replace(board, regions=tuple(tiny if r == small else r for r in board.regions))
    plan = plan_of("mixtral_odd", "q8", shrunk)
    assert (plan.weights_region, plan.weights_address) == ("ddr", large.origin)
    assert {r.name: r.used for r in plan.regions}["ddr"] == plan.layout.image_bytes


def test_an_address_inside_a_region_counts_what_is_before_it() -> None:
    board = load_board("mps3-an547")
    qspi = board.region("qspi")
    plan = plan_of("mixtral_odd", "q8", weights_address=qspi.origin + 0x4000)
    assert {r.name: r.used for r in plan.regions}["qspi"] == 0x4000 + plan.layout.image_bytes
    assert plan.fits
    last = qspi.end - plan.layout.image_bytes
    assert plan_of("mixtral_odd", "q8", weights_address=last).fits
    over = plan_of("mixtral_odd", "q8", weights_address=last + 64)
    assert [r.name for r in over.overflows()] == ["qspi"]


@pytest.mark.parametrize("address", [0x28000020, 0x21000000, 0x0, 0x27FFFFC0, 0xF0000000])
def test_an_address_the_board_does_not_have_is_a_usage_error(address: int) -> None:
    with pytest.raises(UsageError, match="--weights-addr"):
        plan_of("mixtral_odd", "q8", weights_address=address)


def sized(ram: int, weights: int) -> Board:
    """mps2-an386 with other sizes."""
    board = load_board("mps2-an386")
    lengths = {"ram": ram, "psram": weights}
    return replace(
        board, regions=tuple(replace(r, length_bytes=lengths.get(r.name, r.length_bytes)) for r in board.regions)
    )


def fits(name: str, board: Board, quant: str, kv: str, max_seq: int | None) -> bool:
    return make_plan(config_of(name), board, p.settings(quant, kv=kv, max_seq=max_seq)).fits


@settings(max_examples=60, deadline=None, database=None)
@given(
    st.sampled_from(["mixtral_odd", "mixtral_long", p.DEMO]),
    st.sampled_from(["f32", "q8", "q4", "default=f16,experts=q8"]),
    st.sampled_from(["f32", "f16", "q8"]),
    st.integers(4, 1100),
    st.integers(4, 14000),
)
def test_a_remedy_that_is_named_works_and_is_named_where_there_is_one(
    name: str, quant: str, kv: str, ram_kib: int, weights_kib: int
) -> None:
    board = sized(ram_kib << 10, weights_kib << 10)
    chosen = p.settings(quant, kv=kv)
    plan = make_plan(config_of(name), board, chosen)
    if plan.fits:
        require_fit(plan, board, chosen)
        return
    with pytest.raises(DoesNotFit) as caught:
        require_fit(plan, board, chosen)
    error = caught.value
    over = plan.overflows()[0]
    assert error.exit_code == 1
    assert f"region {over.name}" in error.where
    assert f"{over.used - over.length:,} too many" in error.got
    if error.hint.startswith("it fits with "):
        words = dict(re.findall(r"(-q|--kv|--max-seq) (\S+)", error.hint))
        assert words
        max_seq = int(words["--max-seq"]) if "--max-seq" in words else None
        assert fits(name, board, words.get("-q", quant), words.get("--kv", kv), max_seq)
    else:
        assert error.hint.startswith("no quantisation or context length makes it fit")
        shortest = min(64, config_of(name).max_seq)
        assert not any(fits(name, board, q, "q8", shortest) for q in (quant, "q8", "q4"))


@pytest.mark.parametrize(
    ("hint", "ram", "weights"),
    [
        # mixtral_odd: KiB of RAM 28 with an f32 cache, 18 f16, 12 q8, 9 with q8 and 64 tokens; of image 548, 152, 100
        ("it fits with -q q8", 32 << 10, 160 << 10),
        ("it fits with -q q4", 32 << 10, 110 << 10),
        ("it fits with --kv f16", 20 << 10, 1 << 24),
        ("it fits with --kv q8", 14 << 10, 1 << 24),
        ("it fits with -q q8 --kv q8", 20 << 10, 160 << 10),
        ("it fits with -q q4 --kv q8 --max-seq 64", 10 << 10, 110 << 10),
        ("no quantisation or context length makes it fit; choose a larger board (colibri boards)", 1 << 22, 50 << 10),
    ],
)
def test_the_smallest_change_is_named_first(hint: str, ram: int, weights: int) -> None:
    board, chosen = sized(ram, weights), p.settings("f32")
    with pytest.raises(DoesNotFit) as caught:
        require_fit(make_plan(config_of("mixtral_odd"), board, chosen), board, chosen)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("hint", "ram", "weights", "offset"),
    [
        # mixtral_odd: image of 548 KiB as f32, 152 as q8
        ("it fits without --weights-addr", 1 << 22, 1 << 20, (1 << 20) - 4096),
        ("it fits with -q q8", 1 << 22, 200 << 10, 4096),
        ("it fits with -q q8 and without --weights-addr", 1 << 22, 200 << 10, 192 << 10),
        (
            "no quantisation or context length makes it fit; choose a larger board (colibri boards)",
            1 << 22,
            50 << 10,
            4096,
        ),
        (
            "no quantisation or context length makes it fit; choose a larger board (colibri boards)",
            4 << 10,
            1 << 20,
            4096,
        ),
    ],
)
def test_dropping_an_address_is_named_only_where_it_helps(hint: str, ram: int, weights: int, offset: int) -> None:
    board = sized(ram, weights)
    chosen = p.settings("f32", weights_address=board.region("psram").origin + offset)
    with pytest.raises(DoesNotFit) as caught:
        require_fit(make_plan(config_of("mixtral_odd"), board, chosen), board, chosen)
    assert caught.value.hint == hint
    quant = "q8" if "-q q8" in hint else "f32"
    address = None if "without" in hint else chosen.weights_address
    assert plan_of("mixtral_odd", quant, board, weights_address=address).fits is hint.startswith("it fits")


@pytest.mark.parametrize("max_seq", [0, 129, 1 << 30])
def test_a_context_the_checkpoint_was_not_made_for_is_refused(max_seq: int) -> None:
    with pytest.raises(UsageError, match="--max-seq"):
        plan_of("mixtral_odd", "q8", max_seq=max_seq)


def test_a_shorter_context_takes_less_ram_and_the_same_flash() -> None:
    long, short = plan_of("mixtral_odd", "q8"), plan_of("mixtral_odd", "q8", max_seq=5)
    assert short.ram["kv_cache"].bytes * 128 == long.ram["kv_cache"].bytes * 5
    assert short.layout == long.layout


def test_a_context_beyond_the_rotary_functions_is_refused_unless_shortened() -> None:
    huge = replace(config_of("mixtral"), max_seq=1 << 22)
    with pytest.raises(UsageError, match="1048576, the range of the rotary functions"):
        p.settings().apply(huge)
    assert p.settings(max_seq=1 << 20).apply(huge).max_seq == 1 << 20
