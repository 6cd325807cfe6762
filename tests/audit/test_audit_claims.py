# SPDX-License-Identifier: Apache-2.0
"""Each claim of `colibri audit` holds on what we build, and fails on an ELF that breaks it."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from colibri.audit.claims import CHECKS, HARDWARE_CHECKS, Claim, Subject, audit
from colibri.cli import main
from colibri.cli.workflow import board_of
from colibri.errors import ElfError, ImageError
from colibri.folder import Folder, read_folder
from image.packs import Packs
from verify.mutants import Edits, patched_build

from .doctor import WRITE, Doctor

WEIGHTS = ".colibri_weights"


def claims(build: Path, folder: Folder) -> dict[str, Claim]:
    subject = Subject.read(build, folder, board_of(folder))
    made = [check for check in CHECKS if check not in HARDWARE_CHECKS or not subject.simulator]
    return dict(zip((check.__name__ for check in made), audit(subject), strict=True))


def broken(found: dict[str, Claim]) -> dict[str, str]:
    """The claims that do not hold, with their evidence."""
    return {name: claim.evidence for name, claim in found.items() if not claim.holds}


def test_there_is_one_line_a_claim_with_evidence(packs: Packs) -> None:
    folder = packs.folder("mixtral", "q8")
    found = claims(packs.built(folder), folder)
    assert broken(found) == {}
    assert len({claim.name for claim in found.values()}) == len(CHECKS) - len(HARDWARE_CHECKS)
    assert all(claim.evidence and not claim.name.endswith(".") for claim in found.values())


def function(body: str, result: str = "uint32_t", before: str = "") -> str:
    head = f"{result} colibri_audit_probe(float x)"
    return f"{before}{head};\n{head}\n{{\n    (void)x;\n    {body}\n}}\n"


COUNTER = function("static uint32_t calls;\n    return calls++;")
ENGINE_FAULTS: dict[str, tuple[str, str, str]] = {
    # what is put into engine/range.c; the claim it breaks; what the evidence must hold
    "a static that is written": (COUNTER, "no_writable_static", "engine_range.c.o"),
    "a static with a value": ("uint32_t colibri_audit_probe = 7;\n", "no_writable_static", ".data"),
    "a static of each thread": (COUNTER.replace("static", "static _Thread_local"), "no_writable_static", ".tbss"),
    "a static in a section of its own name": (
        '__attribute__((section("fast_ram"))) uint32_t colibri_audit_probe = 7;\n',
        "no_writable_static",
        "fast_ram",
    ),
    "a heap": (
        function("return malloc(3);", "void *", "void *malloc(size_t n_bytes);\n"),
        "no_foreign_symbol",
        "undefined: malloc",
    ),
    "printing": (
        function('return printf("%d", 3);', "int", "int printf(const char *format, ...);\n"),
        "no_foreign_symbol",
        "undefined: printf",
    ),
    "a libm function": (
        function("return expf(x);", "float", "float expf(float x);\n"),
        "no_foreign_symbol",
        "undefined: expf",
    ),
}


def with_probe(text: str) -> Edits:
    include = '#include "internal.h"\n'
    return {"engine/range.c": (include, include + text)}


@pytest.mark.parametrize("name", ENGINE_FAULTS)
def test_what_the_engine_must_not_have_is_seen(packs: Packs, tmp_path: Path, name: str) -> None:
    text, claim, evidence = ENGINE_FAULTS[name]
    folder = packs.private(packs.folder("mixtral", "q8"))
    # without a libc the link itself would refuse most of them
    elf = patched_build(folder, kept(with_probe(text)), tmp_path, flags=["-Wl,--unresolved-symbols=ignore-all"])
    found = broken(claims(elf.parent, folder))
    assert evidence in found[claim]
    # thread-local storage also needs the C library's help
    assert set(found) - ({"no_foreign_symbol"} if "thread" in name else set()) == {claim}


def kept(edits: Edits) -> Edits:
    """Keep the probe from --gc-sections: something that is always linked refers to it."""
    use = "extern char colibri_audit_probe[];\nstatic const char *volatile keep;\n"
    main_ = ("int colibri_app(void)\n{\n", use + "int colibri_app(void)\n{\n    keep = colibri_audit_probe;\n")
    return {**edits, "apps/common/app.c": main_}


@pytest.fixture(scope="module")
def folder(packs: Packs) -> Folder:
    found = packs.folder("mixtral_odd", "q8", "mps3-an547")
    packs.built(found, "generate", opt="2")
    return found


Change = Callable[[Doctor], None]


def doctored(packs: Packs, folder: Folder, change: Change) -> dict[str, str]:
    target = packs.new()
    shutil.copytree(packs.built(folder, "generate", opt="2"), target)
    with Doctor(target / "firmware.elf") as doctor:
        change(doctor)
    return broken(claims(target, folder))


def several(*changes: Change) -> Change:
    return lambda d: [change(d) for change in changes] and None


def moved(address: int) -> Change:
    return several(
        lambda d: d.section(WEIGHTS, "addr", address),
        lambda d: d.segment_of(WEIGHTS, "vaddr", address),
        lambda d: d.segment_of(WEIGHTS, "paddr", address),
    )


DOCTORED: dict[str, tuple[Change, dict[str, str]]] = {
    "a weight bit flipped": (lambda d: d.byte_of(WEIGHTS, 70_000), {"no_weight_in_ram": "not the packed one"}),
    "the last byte of the weights flipped": (lambda d: d.byte_of(WEIGHTS, 155_647), {"no_weight_in_ram": "SHA-256"}),
    "weights writable": (lambda d: d.section(WEIGHTS, "flags", 2 | WRITE), {"no_weight_in_ram": "is writable"}),
    "weights copied at start": (
        lambda d: d.segment_of(WEIGHTS, "vaddr", 0x60000000) or d.section(WEIGHTS, "addr", 0x60000000),
        {"no_weight_in_ram": "would be copied", "planned_addresses": "weights at 0x60000000, planned 0x28000000"},
    ),
    "weights in RAM": (
        moved(0x21100000),
        {"no_weight_in_ram": "lies in RAM region ram", "planned_addresses": "weights at 0x21100000"},
    ),
    "weights at another address of their region": (
        moved(0x28000040),
        {"planned_addresses": "weights at 0x28000040, planned 0x28000000"},
    ),
    "the state larger than planned": (
        lambda d: d.resize("colibri_app_state", 1 << 20),
        {"planned_addresses": "state bytes 0x100000"},
    ),
    "the logits smaller than planned": (
        lambda d: d.resize("colibri_app_logits", 4),
        {"planned_addresses": "logits bytes 0x4"},
    ),
    "initialised data": (
        lambda d: d.section(".rodata", "flags", 2 | WRITE) or rename_section(d, ".rodata", ".data"),
        {"no_writable_static": ".data of"},
    ),
    "code past its region": (
        lambda d: d.section(".rodata", "size", 0x80000),
        {"nothing_over_its_region": "over code"},
    ),
    "a section over the end of RAM": (
        lambda d: d.section(".bss", "size", 0x400001),
        {"nothing_over_its_region": "over ram"},
    ),
    "a section in no region": (
        lambda d: d.section(".bss", "addr", 0x50000000),
        {"nothing_over_its_region": ".bss at 0x50000000 is in no region"},
    ),
    "two sections at one place": (
        lambda d: d.section(".fault_stack", "addr", 0x21000000),
        {"nothing_over_its_region": "overlaps"},
    ),
    "an undefined symbol": (
        lambda d: d.undefine("colibri_check_state"),
        {"no_foreign_symbol": "undefined: colibri_check_state"},
    ),
    **{
        f"the symbol {name}": (
            lambda d, name=name: d.rename("colibri_check_state", name),  # type: ignore[misc]  # a default argument
            {"no_foreign_symbol": f"forbidden: {name}"},
        )
        for name in (
            *("malloc", "_malloc_r", "free", "_sbrk", "printf", "puts", "exit", "_exit", "abort", "__libc_init_array"),
            *("expf", "sqrt", "fmaf", "__aeabi_dmul", "__aeabi_f2d", "__adddf3", "__extendsfdf2", "__truncdfsf2"),
            *("__aeabi_i2d", "__floatsidf", "__aeabi_dcmplt"),
            *("__addsf3", "__aeabi_fmul", "__floatsisf", "__aeabi_cfcmple"),  # the core has an FPU
        )
    },
}


def rename_section(doctor: Doctor, name: str, other: str) -> None:
    """Section names may share their tails: the bytes are changed only where that hurts nobody."""
    table = doctor.elf.get_section(doctor.elf["e_shstrndx"])
    at = table["sh_offset"] + doctor.elf.get_section(doctor._index(name))["sh_name"]
    doctor._data[at : at + len(other) + 1] = other.encode() + b"\0"


@pytest.mark.qemu
def test_a_board_build_holds_every_claim(packs: Packs, folder: Folder) -> None:
    assert doctored(packs, folder, lambda d: None) == {}


@pytest.mark.qemu
@pytest.mark.parametrize("name", DOCTORED)
def test_a_doctored_elf_breaks_its_claim(packs: Packs, folder: Folder, name: str) -> None:
    change, expected = DOCTORED[name]
    found = doctored(packs, folder, change)
    assert set(found) == set(expected)
    for claim, evidence in expected.items():
        assert evidence in found[claim]


@pytest.mark.qemu
def test_a_core_without_an_fpu_may_have_the_listed_float_helpers(packs: Packs) -> None:
    soft = packs.folder("mixtral_odd", "q8", "virt-riscv32")
    packs.built(soft, "generate", opt="2")
    assert doctored(packs, soft, lambda d: None) == {}
    found = doctored(packs, soft, lambda d: d.rename("__addsf3", "__powsf2"))
    assert found == {"no_foreign_symbol": "forbidden: __powsf2"}


@pytest.mark.qemu
def test_a_plan_that_was_changed_after_the_build_is_seen(packs: Packs, folder: Folder) -> None:
    build = packs.built(folder, "generate", opt="2")
    for path, claim in (
        (("image", "bytes"), "planned_addresses"),
        (("settings", "weights_address"), "planned_addresses"),
        (("plan", "ram", "parts", "kv_cache", "bytes"), "planned_addresses"),
    ):
        manifest: Any = json.loads(json.dumps(folder.manifest))
        place = manifest
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] += 64
        assert claim in broken(claims(build, Folder(folder.path, manifest)))


@pytest.mark.qemu
def test_double_arithmetic_in_the_engine_is_seen(packs: Packs, tmp_path: Path) -> None:
    text = function("return (float)((double)x * 1.1);", "float")
    folder = packs.private(packs.folder("mixtral_odd", "q8", "mps3-an547", kernels="portable"))
    elf = patched_build(folder, kept(with_probe(text)), tmp_path, flags=["-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"])
    found = broken(claims(elf.parent, folder))
    assert set(found) == {"no_foreign_symbol"}
    assert "forbidden: __extendsfdf2" in found["no_foreign_symbol"]


def test_audit_says_no_with_exit_code_1(packs: Packs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = packs.private(packs.folder("mixtral", "q8"))
    text, _, _ = ENGINE_FAULTS["a static that is written"]
    patched_build(folder, kept(with_probe(text)), tmp_path)
    assert main.run(["audit", str(folder.path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines].count("FAIL") == 1
    assert main.run(["audit", str(folder.path), "--json"]) == 1
    assert [c["holds"] for c in json.loads(capsys.readouterr().out)["claims"]].count(False) == 1


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF" + bytes(60), b"hello" * 100])
def test_what_is_no_elf_is_refused(packs: Packs, content: bytes) -> None:
    folder = packs.folder("mixtral", "q8")
    build = packs.new()
    shutil.copytree(packs.built(folder), build)
    (build / "firmware.elf").write_bytes(content)
    with pytest.raises(ElfError) as caught:
        claims(build, read_folder(folder.path))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"simulator": 1, "image_sha256": ""}', "the old one"])
def test_a_record_that_does_not_say_what_was_built_is_refused(packs: Packs, content: str) -> None:
    folder = packs.folder("mixtral", "q8")
    build = packs.new()
    shutil.copytree(packs.built(folder), build)
    (build / "build.json").write_text(content)
    with pytest.raises(ImageError) as caught:
        claims(build, folder)
    assert "build it again" in caught.value.hint


def test_a_truncated_elf_is_refused_or_read_never_a_traceback(packs: Packs) -> None:
    folder = packs.folder("mixtral", "q8")
    good = packs.built(folder)
    data = (good / "firmware.elf").read_bytes()
    build = packs.new()
    shutil.copytree(good, build)
    for n in range(0, len(data), max(1, len(data) // 60)):
        (build / "firmware.elf").write_bytes(data[:n])
        with contextlib.suppress(ElfError):
            claims(build, folder)
