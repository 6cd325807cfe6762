# SPDX-License-Identifier: Apache-2.0
"""What the compiled engine is: warnings, symbols, sections, size, and branches that must not be there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from engine_tiny import FIRMWARE, Tiny, engine_sources, flags_of, tiny_of, with_extra
from every_axis import EveryAxis, every_axis, with_encoder

from colibri.build.coefficients import coefficients_header

MEM = {"memcpy", "memset", "memmove", "memcmp"}
SOFT_FLOAT = {
    f"__aeabi_{name}"
    for names in (
        "fadd fsub fmul fdiv i2f ui2f fcmpeq fcmplt fcmple fcmpgt fcmpge",
        "memcpy memset memclr memcpy4 memclr4 memmove",
    )
    for name in names.split()
}
ARM = "arm-none-eabi-gcc"
RISCV = "riscv64-unknown-elf-gcc"
# No constant and no operation is of type double by accident.
FLOAT_WARNINGS = ["-Wunsuffixed-float-constants", "-Wdouble-promotion", "-Wfloat-conversion"]
TARGETS = {
    "x86-64 gcc": ("gcc", "", ["-O2", "-mfma", "-fno-pie", *FLOAT_WARNINGS]),
    "x86-64 gcc -O0, no fma": ("gcc", "", ["-O0", "-fno-pie"]),
    "x86-64 clang": ("clang-19", "", ["-Os", "-mfma", "-fno-pie", "-Weverything", "-Wno-padded", "-Wno-unsafe-buffer-usage",
                                      "-Wno-declaration-after-statement", "-Wno-float-equal", "-Wno-switch-default",
                                      "-Wno-pre-c11-compat", "-Wno-covered-switch-default"]),
    "Cortex-M4": (ARM, "arm-none-eabi-", ["-O2", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"]),
    "Cortex-M4 -O0": (ARM, "arm-none-eabi-", ["-O0", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"]),
    "Cortex-M55": (ARM, "arm-none-eabi-", ["-O3", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"]),
    "Cortex-M3": (ARM, "arm-none-eabi-", ["-Os", "-mcpu=cortex-m3", "-mthumb"]),
    "RV32IMFC": (RISCV, "riscv64-unknown-elf-", ["-O1", "-march=rv32imfc", "-mabi=ilp32f"]),
}  # fmt: skip


def compile_objects(
    tiny: Tiny | EveryAxis, folder: Path, compiler: str, *flags: str, sources: Sequence[Path] | None = None
) -> list[Path]:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (folder / "model_config.h").write_text(tiny.config)

    def one(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        command = [compiler, *flags_of(compiler), *flags, f"-I{FIRMWARE / 'include'}", f"-I{folder}", "-c", str(source)]
        result = subprocess.run([*command, "-o", str(target)], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return target

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, sources or engine_sources()))


def symbols(prefix: str, objects: list[Path]) -> tuple[set[str], set[str]]:
    """Return the external symbols defined, and those left undefined by all objects together."""
    text = subprocess.run([f"{prefix}nm", "-g", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^[0-9a-f]* +([A-Zuvw]) (\S+)$", text, re.MULTILINE)
    defined = {name for kind, name in found if kind not in "Uvw"}
    return defined, {name for _, name in found} - defined


@pytest.fixture(scope="module")
def everything() -> EveryAxis:
    return EveryAxis("q8", with_encoder(every_axis()))


@pytest.mark.parametrize("target", TARGETS)
def test_it_compiles_without_a_warning_and_needs_nothing(target: str, everything: EveryAxis, tmp_path: Path) -> None:
    compiler, prefix, flags = TARGETS[target]
    objects = compile_objects(everything, tmp_path, compiler, *flags)
    defined, undefined = symbols(prefix, objects)
    assert {name for name in defined if not name.startswith("colibri_")} == set()
    assert undefined - MEM - {"colibri_port_cycles"} - (SOFT_FLOAT if target == "Cortex-M3" else set()) == set()
    sizes = subprocess.run([f"{prefix}size", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    rows = [[int(x) for x in line.split()[:3]] for line in sizes.splitlines()[1:]]
    assert [sum(column) for column in zip(*rows, strict=True)][1:] == [0, 0]  # .data, .bss
    if target == "Cortex-M4":
        assert sum(row[0] for row in rows) <= 34 * 1024  # every axis and every format


def test_one_int8_model_is_small(tmp_path: Path) -> None:
    """Code and constants on a Cortex-M4 at -O2, with the int8 KV cache (1.2 KiB)."""
    objects = compile_objects(tiny_of("moe_q8"), tmp_path, ARM, *TARGETS["Cortex-M4"][2])
    sizes = subprocess.run(
        ["arm-none-eabi-size", *map(str, objects)], capture_output=True, text=True, check=True
    ).stdout
    assert sum(int(line.split()[0]) for line in sizes.splitlines()[1:]) <= 10_500


def test_a_prefix_renames_every_symbol_and_names_h_lists_no_other(tmp_path: Path) -> None:
    flags = ["-O1", "-DCOLIBRI_PREFIX=stories", "-DCOLIBRI_STATUS_NAMES=1", "-DCOLIBRI_SOFT_FMA=1"]
    objects = []
    for kv in ("f32", "f16", "q8"):  # a model has one KV cache
        folder = tmp_path / kv
        folder.mkdir()
        whole = [*engine_sources(), *(FIRMWARE / "tokenizer").glob("*.c")]
        chosen = whole if kv == "q8" else [p for p in whole if p.stem == f"kv_{kv}"]
        objects += compile_objects(EveryAxis(kv, with_encoder(every_axis())), folder, "gcc", *flags, sources=chosen)
    defined, undefined = symbols("", objects)
    named = re.findall(r"#define colibri_(\w+)", (FIRMWARE / "include/colibri/names.h").read_text())
    assert len(named) == len(set(named))
    # Symbols of the other kernel sets: tests/kernels, with a compiler for their core.
    others = tuple(f"_{p.parent.name}" for p in FIRMWARE.glob("kernels/*/table.h") if p.parent.name != "portable")
    named = [name for name in named if not name.endswith(others)]
    assert {f"stories_{name}" for name in named} == defined
    assert undefined <= MEM | {"colibri_port_cycles"}


@pytest.mark.parametrize("header", sorted(p.name for p in (FIRMWARE / "include/colibri").glob("*.h")))
def test_public_headers_stand_alone_in_c_and_cxx(header: str, tmp_path: Path) -> None:
    (tmp_path / "model_config.h").write_text(tiny_of("moe_q8").config)
    (tmp_path / "all.c").write_text(f'#include "colibri/{header}"\nextern int something;\n')
    for command in (["g++", "-std=c++17", "-x", "c++"], ["gcc", "-std=c11"]):
        subprocess.run([*command, "-fsyntax-only", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{FIRMWARE / 'include'}",
                        f"-I{tmp_path}", str(tmp_path / "all.c")], check=True)  # fmt: skip


def branches(assembly: str, function: str) -> list[str]:
    body = re.search(rf"<{function}>:\n(.*?)(?:\n\n|\Z)", assembly, re.DOTALL)
    assert body is not None
    return re.findall(r"\t(c?b(?:eq|ne|lt|ge|ltu|geu|gt|le|gtu|leu)z?)\b", body[1])


@pytest.mark.parametrize("opt", ["-O2", "-Os"])
def test_functions_have_no_branch_on_risc_v(opt: str, everything: EveryAxis, tmp_path: Path) -> None:
    """The core without a conditional move: whatever is branch-free here is so everywhere."""
    if shutil.which(RISCV) is None:
        pytest.skip("no RISC-V compiler")
    # Loops of the vector operators: none has a branch but its own, and its entry.
    loops = {
        "absmax": 1,
        "add": 1,
        "axpy": 2,
        "normalise": 1,
        "quantise": 1,
        "rotate": 1,
        "scale": 1,
        "softmax": 3,
        "swiglu": 1,
    }
    chosen = [p for p in engine_sources() if p.stem in {"functions", *loops}]
    objects = compile_objects(everything, tmp_path, RISCV, opt, "-march=rv32imfc", "-mabi=ilp32f", sources=chosen)
    command = ["riscv64-unknown-elf-objdump", "-d"]
    text = {
        o.stem: subprocess.run([*command, str(o)], capture_output=True, text=True, check=True).stdout for o in objects
    }
    assert branches(text["functions"], "colibri_sincos") == []
    for name, n_loops in loops.items():
        assert len(branches(text[name], f"colibri_{name}_portable")) <= 2 * n_loops, name


@pytest.mark.parametrize(
    ("macro", "value"),
    [("FORMAT_VERSION", "3"), ("HIDDEN_SIZE", "70000"), ("MAX_Q", "65537"), ("MAX_TOP_K", "6"), ("MAX_SEQ", "2000000"),
     ("MAX_WIDTH", "0"), ("KERNEL_LAYOUT", "9"), ("QUANT_BYTES", "6"), ("SOFT_FMA", "7"), ("STATUS_NAMES", "-1"),
     ("KV_F16", "2")],
)  # fmt: skip
def test_a_bad_configuration_is_an_error_that_names_the_macro(macro: str, value: str, tmp_path: Path) -> None:
    config = (
        re.sub(rf"#define COLIBRI_{macro} .*\n", "", tiny_of("moe_f32").config) + f"#define COLIBRI_{macro} {value}\n"
    )
    (tmp_path / "model_config.h").write_text(config)
    result = subprocess.run(["gcc", "-std=c11", "-fsyntax-only", f"-I{FIRMWARE / 'include'}", f"-I{tmp_path}",
                             str(FIRMWARE / "kernels/select.c")], capture_output=True, text=True, check=False)  # fmt: skip
    assert result.returncode != 0
    assert re.search(rf"#error .*COLIBRI_{macro}", result.stderr)


def test_a_state_of_another_size_does_not_compile(tmp_path: Path) -> None:
    (tmp_path / "model_config.h").write_text(with_extra("moe_f32", STATE_BYTES="64").config)
    result = subprocess.run(["gcc", "-std=c11", "-fsyntax-only", f"-I{FIRMWARE / 'include'}", f"-I{tmp_path}",
                             str(FIRMWARE / "engine/state.c")], capture_output=True, text=True, check=False)  # fmt: skip
    assert "planner and engine disagree" in result.stderr


def test_the_coefficients_header_is_fresh() -> None:
    assert coefficients_header() == (FIRMWARE / "kernels/coefficients.h").read_text()


def sources() -> list[Path]:
    return sorted(p for folder in ("engine", "kernels") for p in (FIRMWARE / folder).rglob("*.[ch]"))


def test_instruction_sets_are_tested_in_two_files_only() -> None:
    macro = re.compile(r"__(?:ARM|arm|aarch64|riscv|x86_64|i386|SSE|AVX|FMA|SSE_MATH|thumb)\w*__|__ARM_\w+|__riscv\w*")
    users = {
        p.name for p in sources() if p.parent.name in ("engine", "kernels", "portable") and macro.search(p.read_text())
    }
    assert users <= {"isa.h", "select.c"}


def test_kernels_include_nothing_of_the_engine_and_no_source_uses_double() -> None:
    for path in sources():
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"\bdouble\b", text), path
        if "kernels" in path.parts:
            assert not re.search(r'#include ".*(?:engine|internal|colibri/colibri)', text), path
