# SPDX-License-Identifier: Apache-2.0
"""Read a board's TOML. Every rule is one check with its own message; an unknown key is an error, not a comment."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from colibri.boards.description import Alignment, Board, Flash, Qemu, Region, Timing, Toolchain, ToolchainName
from colibri.boards.kernel_sets import KERNEL_SETS
from colibri.data import data_path
from colibri.errors import BoardError, UsageError

APPLICATIONS = ("generate", "verify", "bench")
EDGE_BYTES = {"v7m": 1024, "v8m": 1024, "none": 1024, "pmp": 4096, "mmu": 1 << 21}
"""Region edges by what enforces them: QEMU is 40 times slower with regions that end inside its page (1 or 4 KiB); page
tables are made of 2 MiB blocks."""
ADDRESS_BITS = {"pmp": 34, "mmu": 39}
"""What the start-up code's tables hold."""

_T = TypeVar("_T")


def list_boards() -> tuple[str, ...]:
    """Names of the boards that ship with Colibri, sorted."""
    return tuple(sorted(path.stem for path in (data_path("linker") / "boards").glob("*.toml")))


def load_board(name_or_path: str | Path) -> Board:
    """Load a board that ships with Colibri by name, or any by the path of its TOML."""
    text = str(name_or_path)
    if text.endswith(".toml"):
        path = Path(text)
        if not path.is_file():
            raise UsageError(
                f"board {text}",
                expected="a file",
                got="nothing there" if not path.exists() else "something else",
                hint="give the path of a board's TOML, or the name of a board: `colibri boards`",
            )
        return _load(path)
    path = data_path("linker") / "boards" / f"{text}.toml"
    known = list_boards()
    if text not in known:
        near = difflib.get_close_matches(text, known, n=1)
        raise UsageError(
            f"board '{text}'",
            expected=f"one of {', '.join(known)}",
            got=f"'{text}'",
            hint=f"did you mean {near[0]}?" if near else "a board of your own: give the path of its .toml file",
        )
    return _load(path)


class _Table:
    """A TOML table whose keys are taken one by one; what is left over at the end is an error."""

    def __init__(self, path: Path, name: str, values: Mapping[str, Any]) -> None:
        self.path = path
        self.name = name
        self._values = dict(values)

    def error(self, key: str, expected: str, got: object, hint: str = "") -> BoardError:
        field = f"{self.name}.{key}" if self.name else key
        shown = "nothing" if got is None else f"{got:#x}" if type(got) is int and got > 4096 else repr(got)
        return BoardError(
            f"{self.path}: {field}",
            expected=expected,
            got=got if isinstance(got, _Said) else shown,
            hint=hint or f"correct '{field}'; linker/boards/mps3-an547.toml is a complete example",
        )

    def _take(self, key: str, kind: type[_T], expected: str, default: _T | None) -> _T:
        value = self._values.pop(key, default)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(key, expected, value)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self._take(key, str, "a text", default)
        if not value.strip():
            raise self.error(key, "a text that is not empty", value)
        return value

    def choice(self, key: str, allowed: Iterable[str], default: str | None = None) -> str:
        value = self.text(key, default)
        if value not in allowed:
            raise self.error(key, f"one of {', '.join(allowed)}", value)
        return value

    def integer(self, key: str, *, low: int = 0, high: int = (1 << 64) - 1) -> int:
        value = self._take(key, int, f"an integer from {low:#x} to {high:#x}", None)
        if not low <= value <= high:
            raise self.error(key, f"an integer from {low:#x} to {high:#x}", value)
        return value

    def optional_integer(self, key: str, *, low: int) -> int | None:
        return self.integer(key, low=low) if key in self._values else None

    def texts(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        values = self._take(key, list, "a list of texts", default)
        if not all(isinstance(value, str) and value for value in values):
            raise self.error(key, "a list of texts", values)
        return tuple(values)

    def table(self, key: str) -> _Table:
        values = self._take(key, dict, "a table", None)
        return _Table(self.path, f"{self.name}.{key}" if self.name else key, values)

    def tables(self) -> Iterable[tuple[str, _Table]]:
        for key in list(self._values):
            yield key, self.table(key)

    def has(self, key: str) -> bool:
        return key in self._values

    def finish(self) -> None:
        for key in self._values:
            raise self.error(
                key, "no such field", _Said("a field that Colibri does not know"), "remove it, or correct its name"
            )


class _Said(str):
    """A `got` that is a phrase already, not a value to be quoted."""


def _load(path: Path) -> Board:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BoardError(str(path), expected="a TOML file", got=str(error), hint="correct its syntax") from error
    except OSError as error:
        raise BoardError(
            str(path),
            expected="a file that can be read",
            got=error.strerror or str(error),
            hint="check its permissions",
        ) from error
    top = _Table(path, "", values)
    name = top.text("name")
    if name != path.stem:
        raise top.error("name", f"'{path.stem}', as the file is called", name, "rename the file or the board")
    word_bits = top.integer("word_bits")
    if word_bits not in (32, 64):
        raise top.error("word_bits", "32 or 64", word_bits)
    image = top.choice("image", ("linked", "mapped"))
    linked = image == "linked"
    title, cpu = top.text("title"), top.text("cpu")
    verified = top.choice("verified", ("qemu", "native", "none"))
    arch = top.text("arch")
    sources = _sources(top)
    kernels = top.choice("kernels", KERNEL_SETS)
    mpu = top.choice("mpu", tuple(EDGE_BYTES), "none")
    script = _linker_script(top) if linked else None
    regions = _regions(top, word_bits, mpu) if linked else ()
    place, weights_regions = _place(top, regions) if linked else ({}, ())
    stack = _stack(top) if linked else {}
    alignment = _alignment(top)
    toolchains = _toolchains(top)
    qemu = _qemu(top, linked) if top.has("qemu") else None
    flash = _flash(top.table("flash")) if top.has("flash") else Flash()
    timing = _timing(top.table("timing")) if top.has("timing") else None
    top.finish()
    return Board(
        name=name,
        title=title,
        cpu=cpu,
        path=path,
        word_bits=cast(Any, word_bits),
        verified=cast(Any, verified),
        arch=arch,
        image=cast(Any, image),
        sources=sources,
        kernels=kernels,
        linker_script=script,
        mpu=cast(Any, mpu),
        regions=regions,
        place=MappingProxyType(place),
        weights_regions=weights_regions,
        alignment=alignment,
        stack=MappingProxyType(stack),
        toolchains=MappingProxyType(toolchains),
        qemu=qemu,
        flash=flash,
        timing=timing,
    )


def _file(table: _Table, key: str, name: str, base: Path) -> Path:
    """A file of Colibri's, or, where its name starts with ./, one beside the board's TOML."""
    path = table.path.absolute().parent / name if name.startswith("./") else base / name
    if not path.is_file():
        raise table.error(
            key,
            f"a file in {'the folder of the TOML' if name.startswith('./') else base}",
            name,
            "a file of your own, beside the TOML, is written with ./ before its name",
        )
    return path


def _sources(top: _Table) -> tuple[Path, ...]:
    names = top.texts("sources")
    if not names:
        raise top.error("sources", "at least one file", list(names))
    return tuple(_file(top, "sources", name, data_path("firmware")) for name in names)


def _linker_script(top: _Table) -> Path:
    return _file(top, "linker_script", top.text("linker_script"), data_path("linker"))


def _regions(top: _Table, word_bits: int, mpu: str) -> tuple[Region, ...]:
    regions: list[Region] = []
    table = top.table("regions")
    for name, entry in table.tables():
        if not name.isidentifier():
            raise table.error(name, "a name of letters, digits and _", name)
        region = Region(
            name=name,
            origin=entry.integer("origin", high=(1 << word_bits) - 1),
            length_bytes=entry.integer("bytes", low=1024),
            attributes=cast(Any, entry.choice("attributes", ("r", "rx", "rw", "io"))),
        )
        entry.finish()
        if region.end > 1 << word_bits:
            raise entry.error("bytes", f"an end within {word_bits} bits", region.length_bytes)
        for key, value in (("origin", region.origin), ("bytes", region.length_bytes)):
            if value % EDGE_BYTES[mpu]:
                raise entry.error(key, f"a multiple of {EDGE_BYTES[mpu]}", value)
        _check_protection(entry, region, mpu)
        for other in regions:
            if region.overlaps(other):
                raise entry.error(
                    "origin", f"no overlap with '{other.name}' ({other.origin:#x}..{other.end - 1:#x})", region.origin
                )
        regions.append(region)
    if mpu not in ("none", "mmu") and len([r for r in regions if r.attributes != "io"]) > 5:
        raise top.error(
            "regions", "at most 5 regions, so that with the guard 6 of 8 MPU regions are used", len(regions)
        )
    return tuple(regions)


def _check_protection(entry: _Table, region: Region, mpu: str) -> None:
    """What the protection unit can express."""
    if mpu in ("v7m", "pmp"):
        unit = {"v7m": "an ARMv7-M MPU", "pmp": "a NAPOT entry of a RISC-V PMP"}[mpu]
        if region.length_bytes & (region.length_bytes - 1):
            raise entry.error("bytes", f"a power of two, since {unit} covers nothing else", region.length_bytes)
        if region.origin % region.length_bytes:
            raise entry.error("origin", f"a multiple of the region's size, as {unit} needs", region.origin)
    if mpu in ADDRESS_BITS and region.end > 1 << ADDRESS_BITS[mpu]:
        raise entry.error("bytes", f"an end within {ADDRESS_BITS[mpu]} bits", region.length_bytes)


def _place(top: _Table, regions: tuple[Region, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    table = top.table("place")
    by_name = {region.name: region for region in regions}

    def checked(key: str, name: str, allowed: tuple[str, ...]) -> str:
        if name not in by_name:
            raise table.error(key, f"a region: {', '.join(by_name)}", name)
        if by_name[name].attributes not in allowed:
            raise table.error(
                key,
                f"a region with attributes {' or '.join(allowed)}",
                _Said(f"'{name}' with {by_name[name].attributes}"),
                "weights and code are never in memory that the program may write",
            )
        return name

    place = {
        "code": checked("code", table.text("code"), ("rx",)),
        "ram": checked("ram", table.text("ram"), ("rw",)),
    }
    weights = tuple(checked("weights", name, ("r", "rx")) for name in table.texts("weights"))
    if not weights:
        raise table.error("weights", "at least one region, the default first", list(weights))
    table.finish()
    return place, weights


def _stack(top: _Table) -> dict[str, int]:
    table = top.table("stack")
    stack = {}
    for key in (*APPLICATIONS, "fault"):
        stack[key] = table.integer(key, low=128 if key == "fault" else 256)
    # deepest in colibri_forward, as generate is
    stack["text"] = table.optional_integer("text", low=256) or stack["generate"]
    for key, n_bytes in stack.items():
        if n_bytes % 8:
            raise table.error(key, "a multiple of 8", n_bytes)
    table.finish()
    return stack


def _alignment(top: _Table) -> Alignment:
    table = top.table("alignment")
    values = {}
    for key in ("erase_sector_bytes", "cache_line_bytes"):
        values[key] = table.integer(key, low=4)
        if values[key] & (values[key] - 1):
            raise table.error(key, "a power of two", values[key])
    table.finish()
    return Alignment(**values)


def _toolchains(top: _Table) -> dict[ToolchainName, Toolchain]:
    table = top.table("toolchain")
    toolchains: dict[ToolchainName, Toolchain] = {}
    for name, entry in table.tables():
        if name not in ("gcc", "llvm"):
            raise table.error(name, "gcc or llvm", name)
        key = cast(ToolchainName, name)
        toolchains[key] = Toolchain(
            name=key,
            compiler=entry.text("compiler"),
            package=entry.text("package"),
            flags=entry.texts("flags"),
            link_flags=entry.texts("link_flags", []),
        )
        entry.finish()
    if "gcc" not in toolchains:
        raise top.error("toolchain", "at least [toolchain.gcc], which also links", sorted(toolchains))
    return toolchains


def _qemu(top: _Table, linked: bool) -> Qemu:
    table = top.table("qemu")
    qemu = Qemu(
        binary=table.text("binary"),
        package=table.text("package"),
        machine=table.text("machine") if linked else None,
        args=table.texts("args", []),
        ram_mib=table.optional_integer("ram_mib", low=1),
    )
    table.finish()
    return qemu


def _flash(table: _Table) -> Flash:
    flash = Flash(
        pyocd=table.text("pyocd") if table.has("pyocd") else None,
        openocd=table.texts("openocd", []),
        jlink=table.text("jlink") if table.has("jlink") else None,
        jlink_interface=cast(Any, table.choice("jlink_interface", ("SWD", "JTAG"), "SWD")),
    )
    table.finish()
    return flash


def _timing(table: _Table) -> Timing:
    """The clock alone, or with all that is known about the memory of the weights."""
    clock_hz = table.integer("clock_hz", low=1)
    if table.has("flash_read_mb_s"):
        timing = Timing(
            clock_hz,
            flash_read_mb_s=table.integer("flash_read_mb_s", low=1),
            line_bytes=table.integer("line_bytes", low=1),
            line_latency_cycles=table.integer("line_latency_cycles"),
        )
    else:
        timing = Timing(clock_hz)
    table.finish()
    return timing
