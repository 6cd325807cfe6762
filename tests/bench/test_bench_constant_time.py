# SPDX-License-Identifier: Apache-2.0
"""A step's instructions and addresses depend on the position alone; and the check sees where they do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.command import MIXTRAL, ROOT, call, validate
from colibri.cli.bench.constant_time import table
from colibri.errors import NoVerdict
from colibri.folder import read_folder
from colibri_sim.constant_time import Difference, compare
from colibri_sim.operators import walk_of
from colibri_sim.qemu.frames import Walk
from colibri_sim.qemu.tracer import Window, parse
from sampled import chosen
from verify.mutants import Edits, patched_build

WITH_FPU = (
    *("mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547"),
    *("virt-riscv32f", "virt-riscv64", "virt-aarch64", "virt-aarch64-a72"),
)
MIXED = ("-q", "default=q8,embedding=f16,attention=q8:32,experts=q4:32,head=bf16", "--kv", "q8")
Q4 = ("-q", "q4:32")
DYNAMIC = ROOT / "tests" / "oracles" / "data" / "dynamic_moe"


def constant_time(target: Path, *options: str) -> tuple[int, dict[str, Any]]:
    result = call("bench", target, "--constant-time", "--json", *options)
    validate(result.document, "bench-constant-time")
    (row,) = result.document["results"]
    return result.code, row


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("board", "toolchain", "options"),
    chosen(
        [
            *((board, toolchain, ()) for board in WITH_FPU for toolchain in ("gcc", "llvm")),
            *(("mps2-an386", toolchain, MIXED) for toolchain in ("gcc", "llvm")),
            *(("virt-riscv32f", toolchain, MIXED) for toolchain in ("gcc", "llvm")),
            ("mps3-an547", "gcc", Q4),
            ("mps3-an547", "llvm", MIXED),
            ("virt-aarch64", "llvm", Q4),
        ],
        {
            ("mps2-an386", "gcc", ()),
            ("mps3-an547", "llvm", ()),
            ("virt-riscv64", "gcc", ()),
            ("virt-aarch64", "llvm", ()),
            ("mps2-an386", "llvm", MIXED),
            ("mps3-an547", "gcc", Q4),
        },
    ),
)
def test_a_step_depends_on_the_position_alone(board: str, toolchain: str, options: tuple[str, ...]) -> None:
    code, row = constant_time(MIXTRAL, "-b", board, "--toolchain", toolchain, *options)
    assert (code, row["holds"], row["first_difference"]) == (0, True, None), row["first_difference"]
    assert row["prompts"] == 32
    assert [(p["code_traces"], p["data_traces"]) for p in row["positions"]] == [(1, 1)] * 8
    assert [p["most"] for p in row["positions"]] == sorted(p["fewest"] for p in row["positions"])


@pytest.mark.qemu
def test_without_an_fpu_the_spread_is_stated() -> None:
    code, row = constant_time(MIXTRAL, "-b", "mps2-an385")
    assert (code, row["holds"]) == (1, False)
    assert all(1 < p["code_traces"] <= 32 for p in row["positions"])
    assert all(p["fewest"] < p["most"] < 1.05 * p["fewest"] for p in row["positions"])


@pytest.mark.qemu
@pytest.mark.slow
def test_dynamic_top_k_is_not_claimed() -> None:
    code, row = constant_time(DYNAMIC, "-b", "mps2-an386")
    assert (code, row["holds"], row["by_design"]) == (1, False, ["router.top_p"])
    assert row["first_difference"]["what"] == "instructions"
    assert row["first_difference"]["layer"] in (0, 2)  # those with experts


FAULTS: dict[str, tuple[Edits, str, str]] = {
    "a branch on an activation": (
        {
            "engine/block.c": (
                "    colibri_kernels.swiglu(g, u, n);",
                '    if (g[1] > 0.0f) __asm__ volatile("nop");\n    colibri_kernels.swiglu(g, u, n);',
            )
        },
        *("act", "instructions"),
    ),
    "a branch on the expert": (
        {
            "include/colibri/tables.h": (
                "    return (uint32_t)state->expert_ids[state->header.slot];",
                '    if (state->expert_ids[state->header.slot] & 1) __asm__ volatile("nop");\n'
                "    return (uint32_t)state->expert_ids[state->header.slot];",
            )
        },
        *("router", "instructions"),  # the walk asks for the next stage's size first, and belongs to the stage before
    ),
    "a logit loaded by the expert's number": (
        {"engine/top_k.c": ("chosen[j] = colibri_from_order_key(best_key)", "chosen[j] = values[ids[j]]")},
        *("router", "addresses"),
    ),
    "a table at the token's number": (
        {
            "engine/embed.c": (
                "    uint32_t row = (uint32_t)id;",
                "    uint32_t row = (uint32_t)id;\n    (void)*(volatile const uint8_t *)(model->image + row);",
            )
        },
        *("embed", "addresses"),
    ),
}


@pytest.mark.qemu
@pytest.mark.parametrize("fault", FAULTS)
def test_what_depends_on_data_is_seen_and_named(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits, stage, what = FAULTS[fault]
    folder = tmp_path / "packed"
    assert call("pack", MIXTRAL, "-b", "mps2-an386", "-o", folder).code == 0
    bench = ROOT / "firmware" / "apps" / "bench.c"
    elf = patched_build(read_folder(folder), edits, tmp_path / "patched", app=bench, opt="2")
    monkeypatch.setattr("colibri.cli.targets.built", lambda *arguments: elf)
    code, row = constant_time(folder)
    assert code == 1
    found = row["first_difference"]
    assert (found["position"], found["stage"], found["layer"], found["what"]) == (0, stage, 0, what)
    assert (row["positions"][0]["code_traces"] > 1) == (what == "instructions")
    assert "NO" in call("bench", folder, "--constant-time").out


WALK = [Walk(name, layer) for name, layer in (("embed", 0), ("q", 0), ("q", 1))]
STEADY = Window((("0", "0"), ("1", "1"), ("2", "2")), "3", "3", "a", 10, 4)
OTHER_ROW = replace(STEADY, raw="b")


def test_prompts_that_touch_the_same_addresses_show_nothing() -> None:
    assert compare([[STEADY], [OTHER_ROW]], WALK).holds
    with pytest.raises(NoVerdict, match="different rows"):
        compare([[STEADY], [STEADY]], WALK)


def test_the_first_difference_is_in_the_stage_before_it_shows() -> None:
    in_q = replace(OTHER_ROW, stages=(("0", "0"), ("1", "1"), ("2", "x")), data="y")
    at_the_end = replace(OTHER_ROW, code="y", instructions=12)
    assert compare([[STEADY], [in_q]], WALK).first_difference == Difference(0, 1, "q", 0, "addresses")
    timing = compare([[STEADY, STEADY], [OTHER_ROW, at_the_end]], WALK)
    assert timing.first_difference == Difference(1, 1, "q", 1, "instructions")
    assert [(p.code_traces, p.fewest, p.most) for p in timing.positions] == [(1, 10, 10), (2, 10, 12)]


def test_each_position_has_its_own_walk_where_there_are_more() -> None:
    longer = [*WALK, Walk("embed", 0), Walk("up", 0), Walk("up", 0), Walk("head", 0)]
    assert [walk_of(WALK, i) for i in (0, 5)] == [WALK, WALK]
    assert [walk_of(longer, i) for i in (0, 1, 2)] == [WALK, longer[3:], longer[3:]]
    at_the_end = replace(OTHER_ROW, code="y", instructions=12)
    timing = compare([[STEADY, STEADY], [OTHER_ROW, at_the_end]], longer)
    assert timing.first_difference == Difference(1, 1, "head", 0, "instructions")


def test_what_is_not_claimed_is_said() -> None:
    row = dict.fromkeys(("board", "toolchain", "quant", "kv", "first_difference"))
    row |= {"holds": False, "positions": [{"code_traces": 2, "fewest": 10, "most": 15}], "by_design": ["router.top_p"]}
    assert "by design, and not claimed (NUMERICS.md 10): router.top_p" in table({"results": [row]})
    assert "by design" not in table({"results": [row | {"by_design": []}]})


def test_the_plugins_lines_become_windows() -> None:
    lines = ["s 0 0", "s 1 1", "w 3 3 a 10 4", "w 5 5 b 1 0", "end"]
    first, second = parse(lines)
    assert first == Window((("0", "0"), ("1", "1")), "3", "3", "a", 10, 4)
    assert second == Window((), "5", "5", "b", 1, 0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("-b", "linux-x86_64"), "a board whose weights have a fixed address"),
        (("--serial", "/dev/null"), "one of --serial, --kernels"),
    ],
)
def test_what_cannot_be_traced_is_refused(options: tuple[str, ...], problem: str) -> None:
    result = call("bench", MIXTRAL, "--constant-time", *options)
    assert result.code == 2
    assert problem in result.error_lines()[0]
