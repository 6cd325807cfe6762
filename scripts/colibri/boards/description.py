# SPDX-License-Identifier: Apache-2.0
"""What is known about a board, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from colibri.boards.kernel_sets import KERNEL_SETS
from colibri.errors import UsageError

ToolchainName = Literal["gcc", "llvm"]


@dataclass(frozen=True)
class Region:
    """A range of addresses. `attributes` is r, rx, rw or io (device registers): what the program may do there, not what
    the part could."""

    name: str
    origin: int
    length_bytes: int
    attributes: Literal["r", "rx", "rw", "io"]

    @property
    def end(self) -> int:
        """The first address past the region."""
        return self.origin + self.length_bytes

    def __contains__(self, address: int) -> bool:
        return self.origin <= address < self.end

    def overlaps(self, other: Region) -> bool:
        """Whether the two share an address."""
        return self.origin < other.end and other.origin < self.end


@dataclass(frozen=True)
class Toolchain:
    """How to compile for a board. `flags` name the core and go to compiler and linker; `link_flags` only to the latter.

    compiler  the program's name; bare-metal ELFs are always linked by the GCC toolchain, whose libgcc is used
    package   the Debian package that has the compiler
    """

    name: ToolchainName
    compiler: str
    package: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]


@dataclass(frozen=True)
class Qemu:
    """The simulator. `machine` None: user-mode emulation, for counting, and where the host is another machine."""

    binary: str
    package: str
    machine: str | None
    args: tuple[str, ...]
    ram_mib: int | None


@dataclass(frozen=True)
class Flash:
    """What each debug probe's program calls the part. None, or empty: not known.

    pyocd  its target    openocd  its configuration files    jlink  its device, on `jlink_interface`
    """

    pyocd: str | None = None
    openocd: tuple[str, ...] = ()
    jlink: str | None = None
    jlink_interface: Literal["SWD", "JTAG"] = "SWD"


@dataclass(frozen=True)
class Timing:
    """What `bench --estimate` knows beside the core. flash_read_mb_s None: nothing about the memory of the weights.

    clock_hz             the core's
    flash_read_mb_s      bytes a microsecond that the memory of the weights gives, once a line is under way
    line_bytes           what one access reads    line_latency_cycles  of the core, until its first byte
    """

    clock_hz: int
    flash_read_mb_s: int | None = None
    line_bytes: int = 0
    line_latency_cycles: int = 0


@dataclass(frozen=True)
class Alignment:
    """Defaults for placing weights: an expert starts on an erase sector, a row on a cache line."""

    erase_sector_bytes: int
    cache_line_bytes: int


@dataclass(frozen=True)
class Board:
    """A board.

    image      linked: the weights are a section of the ELF at a fixed address; mapped: a file given at run time
    verified   what a test of this repository shows: qemu (never real hardware), native, none
    kernels    the best kernel set its core runs: a folder in firmware/kernels
    sources    firmware files of this board, absolute, without the weights' own (arch/weights.S, for linked images)
    mpu        v7m, v8m, pmp (RISC-V), mmu (AArch64 page tables) or none: how the regions' attributes are enforced
    place      which region holds code and which RAM; empty for mapped images, as `regions` and `weights_regions` are
    stack      bytes of the stack by application, and `fault`: bytes of the handler's own
    """

    name: str
    title: str
    cpu: str
    path: Path
    word_bits: Literal[32, 64]
    verified: Literal["qemu", "native", "none"]
    arch: str
    image: Literal["linked", "mapped"]
    sources: tuple[Path, ...]
    kernels: str
    linker_script: Path | None
    mpu: Literal["v7m", "v8m", "pmp", "mmu", "none"]
    regions: tuple[Region, ...]
    place: Mapping[str, str]
    weights_regions: tuple[str, ...]
    alignment: Alignment
    stack: Mapping[str, int]
    toolchains: Mapping[ToolchainName, Toolchain]
    qemu: Qemu | None
    flash: Flash = Flash()
    timing: Timing | None = None

    def region(self, name: str) -> Region:
        """Return the region `name`; KeyError is a bug of the caller."""
        return {region.name: region for region in self.regions}[name]

    @property
    def code_region(self) -> Region | None:
        """Where code and constants go; None for mapped images, as `ram_region` is."""
        return self.region(self.place["code"]) if self.image == "linked" else None

    @property
    def ram_region(self) -> Region | None:
        """Where stacks and .bss go."""
        return self.region(self.place["ram"]) if self.image == "linked" else None

    @property
    def default_weights_region(self) -> Region | None:
        """Where weights go without --weights-addr; None for mapped images, whose address is the kernel's choice."""
        return self.region(self.weights_regions[0]) if self.weights_regions else None

    def checked_kernels(self, name: str) -> str:
        """Return `name`, the kernel set that the user gave with --kernels, or say which ones this board's core runs."""
        runs = KERNEL_SETS[self.kernels]
        if name not in runs:
            raise UsageError(
                f"--kernels {name}",
                expected=f"a kernel set that the {self.cpu} of {self.name} runs: {', '.join(runs)}",
                got=name,
                hint=f"leave the option out: {self.name} has {self.kernels}",
            )
        return name

    def weights_region_at(self, address: int) -> Region:
        """Return the weights region that holds `address`, which the user gave with --weights-addr."""
        where = f"--weights-addr {address:#x}"
        if self.image == "mapped":
            raise UsageError(
                where,
                expected=f"no address for {self.name}",
                got=f"{address:#x}",
                hint=f"{self.name} maps the image wherever the kernel puts it: leave the option out",
            )
        regions = [self.region(name) for name in self.weights_regions]
        for region in regions:
            if address in region:
                if address % 64 != 0:
                    raise UsageError(
                        where,
                        expected="a multiple of 64 bytes",
                        got=f"{address:#x}",
                        hint=f"use {address // 64 * 64:#x}",
                    )
                return region
        listed = ", ".join(f"{r.name} {r.origin:#010x}..{r.end - 1:#010x}" for r in regions)
        raise UsageError(
            where,
            expected=f"an address in a weights region of {self.name} ({listed})",
            got=f"{address:#x}",
            hint=f"use --weights-addr {regions[0].origin:#x}, or add the region to {self.path.name}",
        )

    def toolchain(self, name: ToolchainName) -> Toolchain:
        """Return how to compile with `name`, or say that the board has no such toolchain."""
        if name not in self.toolchains:
            raise UsageError(
                f"--toolchain {name}",
                expected=f"a toolchain of {self.name}: {', '.join(self.toolchains)}",
                got=name,
                hint=f"choose one of those, or add [toolchain.{name}] to {self.path.name}",
            )
        return self.toolchains[name]
