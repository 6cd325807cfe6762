# SPDX-License-Identifier: Apache-2.0
"""What is claimed about a firmware, each shown from its ELF: one function a claim, whose docstring is the claim."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri.audit.elf import Elf, Section
from colibri.audit.interrupts import MAY_MASK, masking_instructions
from colibri.audit.mapfile import Contribution, contributions
from colibri.audit.semihosting import semihosting_traps
from colibri.boards import Board
from colibri.folder import Folder, read_build

WEIGHTS = ".colibri_weights"
_WRITABLE_SECTIONS = (".data", ".bss", ".tdata", ".tbss")

_ALLOWED_UNDEFINED = re.compile(r"mem(cpy|set|move|cmp)|__aeabi_mem(cpy|set|move|clr)[48]?")
_FORBIDDEN = re.compile(
    r"_?(malloc|calloc|realloc|free|sbrk|printf|sprintf|snprintf|vprintf|puts|fopen|exit|abort|atexit|environ|impure_ptr)(_r)?"
    r"|__libc_\w+|_?(expf?|logf?|powf?|sinf?|cosf?|tanhf?|sqrtf?|fmaf?)"
)
_DOUBLE_HELPER = re.compile(
    r"__aeabi_(d\w+|\w+2d)|__\w*[dt]f[23]|__float\w*[dt]f|__fix(uns)?[dt]f\w+|__trunc[dt]f\w+|__gnu_\w*2d"
)
# A float operation as a function of libgcc; the second are those that a core without an FPU may have.
_FLOAT_HELPER = re.compile(
    r"__aeabi_(f\w+|cf\w+|u?[il]2f)|__\w*sf[23]|__float\w*sf|__fix(uns)?sf\w+|__powisf2|__mulsc3|__divsc3"
)
_SOFT_FLOAT = re.compile(
    r"__aeabi_(f(add|sub|rsub|mul|div|neg|cmp(eq|lt|le|gt|ge|un)|2u?iz)|cf(cmpeq|cmple|rcmple)|u?[il]2f)"
    r"|__(add|sub|mul|div|neg|eq|ne|lt|le|gt|ge|unord)sf[23]|__float(un)?[sd]isf|__fix(uns)?sfsi"
)


@dataclass(frozen=True)
class Claim:
    """One line of the audit."""

    name: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Subject:
    """A built application and what it was built from.

    engine     the engine's objects, partly linked (mapped images only)
    simulator  whether its console is the simulator's
    """

    elf: Elf
    parts: list[Contribution]
    folder: Folder
    board: Board
    engine: Elf | None
    simulator: bool

    @staticmethod
    def read(build: Path, folder: Folder, board: Board) -> Subject:
        """Read a build's folder. Raises ElfError, ImageError."""
        elf = Elf.read(build / "firmware.elf")
        engine = build / "engine.o"
        parts = contributions((build / "firmware.map").read_text())
        simulator = bool(read_build(build)["simulator"])
        return Subject(elf, parts, folder, board, Elf.read(engine) if engine.exists() else None, simulator)

    @property
    def weights_address(self) -> int:
        """Where the image was packed for."""
        return int(self.folder.manifest["settings"]["weights_address"])


def audit(subject: Subject) -> list[Claim]:
    """Every claim that is made about such a build, in a fixed order."""
    return [_claim(check, subject) for check in CHECKS if not (check in HARDWARE_CHECKS and subject.simulator)]


Check = Callable[[Subject], tuple[list[str], str]]
"""Returns what contradicts the claim, and the evidence where nothing does."""


def _claim(check: Check, subject: Subject) -> Claim:
    problems, evidence = check(subject)
    name = " ".join((check.__doc__ or "").split()).rstrip(".")
    shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
    return Claim(name, not problems, shown or evidence)


def planned_addresses(subject: Subject) -> tuple[list[str], str]:
    """Weights, state and logits are where and as large as planned."""
    manifest: dict[str, Any] = subject.folder.manifest
    if subject.board.image == "mapped":
        return [], f"the image is mapped from a file of {manifest['image']['bytes']:,} bytes"
    section = subject.elf.section(WEIGHTS)
    if section is None:
        return [f"no section {WEIGHTS}"], ""
    ram = {name: part["bytes"] for name, part in manifest["plan"]["ram"]["parts"].items()}
    facts = {
        "weights at": (subject.weights_address, section.address),
        "weights bytes": (manifest["image"]["bytes"], section.bytes),
        "state bytes": (ram["kv_cache"] + ram["activations"], subject.elf.symbol_bytes("colibri_app_state")),
        "logits bytes": (ram["logits"], subject.elf.symbol_bytes("colibri_app_logits")),
    }
    problems = [f"{name} {got:#x}, planned {planned:#x}" for name, (planned, got) in facts.items() if planned != got]
    return problems, ", ".join(f"{name} {planned:#x}" for name, (planned, _) in facts.items())


def no_foreign_symbol(subject: Subject) -> tuple[list[str], str]:
    """No undefined symbol, no heap, no libc or libm function, no double arithmetic, no float helper on a core with an FPU."""
    engine = subject.engine or subject.elf
    undefined = [s.name for s in engine.symbols if s.section is None and not _ALLOWED_UNDEFINED.fullmatch(s.name)]
    if subject.engine is not None:
        undefined = [name for name in undefined if name != "colibri_port_cycles"]
    both = [*engine.symbols, *(subject.elf.symbols if subject.engine is not None else ())]
    named = [s.name for s in both if _FORBIDDEN.fullmatch(s.name) or _DOUBLE_HELPER.fullmatch(s.name)]
    helpers = {s.name for s in subject.elf.symbols if s.section is not None and _FLOAT_HELPER.fullmatch(s.name)}
    named += sorted(helpers if subject.elf.fpu else {name for name in helpers if not _SOFT_FLOAT.fullmatch(name)})
    problems = [f"undefined: {name}" for name in undefined] + [f"forbidden: {name}" for name in named]
    what = "the engine's objects" if subject.engine is not None else "the whole ELF"
    soft = f"; float operations of libgcc: {', '.join(sorted(helpers))}" if helpers else ""
    return problems, f"{len(engine.symbols)} symbols of {what} looked at{soft}"


def no_writable_static(subject: Subject) -> tuple[list[str], str]:
    """The engine has no writable static, and nothing is initialised at start."""
    engine = [p for p in subject.parts if p.object.startswith(("engine_", "kernels_"))]
    problems = [
        f"{p.object}: {p.section} of {p.bytes} bytes" for p in engine if p.section.startswith(_WRITABLE_SECTIONS)
    ]
    if subject.engine is not None:  # what has another name shows by its flags
        named = [s for s in subject.engine.sections if s.writable and not s.name.startswith(_WRITABLE_SECTIONS)]
        problems += [f"engine.o: {s.name} of {s.bytes} bytes" for s in named if s.bytes]
    problems += [f"{p.object}: {p.section}" for p in engine if "init_array" in p.section or "ctors" in p.section]
    if subject.board.image == "linked":
        for section in subject.elf.sections:
            if section.bytes and (section.name.startswith((".data", ".init_array", ".ctors", ".preinit"))):
                problems.append(f"{section.name} of {section.bytes} bytes")
    return problems, f"{len(engine)} linked sections of the engine, none writable"


def no_weight_in_ram(subject: Subject) -> tuple[list[str], str]:
    """No weight byte is in RAM, and those in flash are those that were packed."""
    if subject.board.image == "mapped":
        packed = subject.folder.manifest["image"]["bytes"]
        large = [s for s in subject.elf.sections if s.bytes >= packed]
        writable = [f"{s.name} of {s.bytes} bytes" for s in large if not s.writable]
        return writable, "the ELF holds no weights; the program maps the image read-only"
    section = subject.elf.section(WEIGHTS)
    if section is None:
        return [f"no section {WEIGHTS}"], ""
    ram = subject.board.ram_region
    problems = []
    if section.writable:
        problems.append(f"{WEIGHTS} is writable")
    if section.load_address != section.address:
        problems.append(
            f"{WEIGHTS} is loaded at {_shown(section.load_address)} and used at {section.address:#x}: it would be copied"
        )
    if ram is not None and section.address < ram.end and ram.origin < section.address + section.bytes:
        problems.append(f"{WEIGHTS} lies in RAM region {ram.name}")
    load_address = section.address if section.load_address is None else section.load_address
    digest = hashlib.sha256(subject.elf.data(load_address, section.bytes)).hexdigest()
    if digest != subject.folder.manifest["image"]["sha256"]:
        problems.append(f"the ELF's weights have SHA-256 {digest}, not the packed one")
    return problems, f"LMA = VMA = {section.address:#x}, read-only, SHA-256 {digest[:16]}..."


def _shown(address: int | None) -> str:
    return "no address" if address is None else f"{address:#x}"


def nothing_over_its_region(subject: Subject) -> tuple[list[str], str]:
    """No section is over its region, and none overlaps another."""
    if subject.board.image == "mapped":
        return [], "the operating system places the program"
    problems = list(_outside(subject)) + list(_overlaps(subject.elf.sections))
    used = {region.name: 0 for region in subject.board.regions}
    for section in subject.elf.sections:
        for region in subject.board.regions:
            if section.address in region:
                used[region.name] += section.bytes
    if problems:
        largest = sorted(subject.parts, key=lambda p: -p.bytes)[:3]
        problems.append("largest: " + ", ".join(f"{p.object} {p.section} {p.bytes:,}" for p in largest))
    return problems, ", ".join(f"{name} {n:,}" for name, n in used.items() if n)


def _outside(subject: Subject) -> Iterator[str]:
    for section in subject.elf.sections:
        for address in {section.address, section.load_address}:
            if address is None or not section.bytes:
                continue
            region = next((r for r in subject.board.regions if address in r), None)
            if region is None:
                yield f"{section.name} at {address:#x} is in no region"
            elif address + section.bytes > region.end:
                yield f"{section.name} is {address + section.bytes - region.end:,} bytes over {region.name}"


def _overlaps(sections: tuple[Section, ...]) -> Iterator[str]:
    placed = sorted((s for s in sections if s.bytes), key=lambda s: s.address)
    for first, second in itertools.pairwise(placed):
        if first.address + first.bytes > second.address:
            yield f"{first.name} overlaps {second.name}"


def no_masked_interrupt(subject: Subject) -> tuple[list[str], str]:
    """No instruction masks interrupts, except in the reset code."""
    if subject.board.image == "mapped":
        return [], "a program of the operating system cannot mask interrupts"
    found, count = masking_instructions(subject.elf, subject.board.arch)
    problems = [str(f) for f in found if f.function not in MAY_MASK]
    if count == 0:
        problems.append("no code")
    allowed = [f"{f.text} in {f.function}" for f in found if f.function in MAY_MASK]
    return problems, f"{count:,} instructions looked at" + (f"; allowed: {', '.join(allowed)}" if allowed else "")


def no_semihosting_trap(subject: Subject) -> tuple[list[str], str]:
    """No semihosting trap."""
    found, count = semihosting_traps(subject.elf, subject.board.arch)
    problems = [str(f) for f in found]
    if count == 0:
        problems.append("no code")
    return problems, f"{count:,} instructions looked at"


CHECKS: tuple[Check, ...] = (
    planned_addresses,
    no_foreign_symbol,
    no_writable_static,
    no_weight_in_ram,
    nothing_over_its_region,
    no_masked_interrupt,
    no_semihosting_trap,
)
HARDWARE_CHECKS = (no_semihosting_trap,)
"""Claimed of hardware builds only: a simulator's build has the trap, and no line that a script could take for the other's."""
