# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and parameter types that state their rule when they refuse."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from colibri.errors import UsageError
from colibri.layout.settings import ExpertAlign, Settings
from colibri.model import Reading
from colibri.quantise import Policy
from colibri_sim.serial import BAUD_RATES, DEFAULT_BAUD, SerialPort

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:  # not generic at run time in older releases
    _ParamType = click.ParamType

_SUFFIX = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class IntegerType(_ParamType):
    """An integer: decimal, 0x hexadecimal, or a size with K, M or G."""

    name = "integer"

    def __init__(self, minimum: int = 0, maximum: int = (1 << 64) - 1) -> None:
        self._minimum, self._maximum = minimum, maximum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the text. Fails as a usage error that states the rule."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(0[xX][0-9a-fA-F_]+|[0-9_]+)([KMG]?)", value)
        number = int(match[1], 0) * _SUFFIX[match[2]] if match and _readable(match[1]) else None
        if number is None or not self._minimum <= number <= self._maximum:
            rule = f"an integer from {self._minimum} to {self._maximum:#x}, as 4096, 0x1000 or 4K"
            self.fail(f"'{value}' is not {rule}", param, ctx)
        return number


def _readable(digits: str) -> bool:
    try:
        int(digits, 0)
    except ValueError:
        return False
    return True


class SecondsType(_ParamType):
    """A time in seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the text. Fails as a usage error that states the rule."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not 0.1 <= seconds <= 1e6:
            self.fail(f"'{value}' is not a number of seconds from 0.1 to 1000000", param, ctx)
        return seconds


class PrefixType(_ParamType):
    """A C identifier in lower case."""

    name = "prefix"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read the text. Fails as a usage error that states the rule."""
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", value):
            self.fail(f"'{value}' is not a C identifier of at most 31 lower-case letters, digits and _", param, ctx)
        return str(value)


class AlignType(_ParamType):
    """line, sector, or a power of two from 16 to 1 MiB."""

    name = "align"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ExpertAlign:
        """Read the text. Fails as a usage error that states the rule."""
        if value in ("line", "sector"):
            return value  # type: ignore[no-any-return]  # the two literals
        number = IntegerType(16, 1 << 20).convert(value, param, ctx)
        if number & (number - 1):
            self.fail(f"{number} is not a power of two", param, ctx)
        return number


class SerialType(_ParamType):
    """PORT or PORT@BAUD: a serial device or a pseudo-terminal."""

    name = "serial"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> SerialPort:
        """Read the text. Fails as a usage error that states the rule."""
        if isinstance(value, SerialPort):
            return value
        path, at, baud = value.rpartition("@")
        if not at or not baud.isdecimal():
            path, baud = value, str(DEFAULT_BAUD)
        if int(baud) not in BAUD_RATES:
            self.fail(f"'{baud}' is not a rate of this system: {', '.join(map(str, BAUD_RATES))}", param, ctx)
        return SerialPort(Path(path), int(baud))


CHECKPOINT = click.argument("checkpoint", type=click.Path(path_type=Path))
TARGET = click.argument("target", metavar="DIR|CHECKPOINT", type=click.Path(path_type=Path))
DIR = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")
BOARD = click.option("-b", "--board", metavar="BOARD", help="A board's name, or the path of its .toml.")
WORK = click.option(
    "--work", type=click.Path(path_type=Path), help="Keep the packed folder here, and reuse it while nothing changed."
)
OPT = click.option(
    "--opt", type=click.Choice(["0", "1", "2", "3", "s"]), default="2", show_default=True, help="Optimisation level."
)
JOBS = click.option("--jobs", type=IntegerType(1, 256), default=2, show_default=True, help="Compilers at once.")
TIMEOUT = click.option("--timeout", type=SecondsType(), help="Seconds for the simulator; default: from the plan.")
SERIAL = click.option(
    "--serial",
    metavar="PORT[@BAUD]",
    type=SerialType(),
    help=f"The real board, built with --hardware and flashed, at this port. [@{DEFAULT_BAUD}]",
)


def toolchain(*, allow_all: bool) -> Callable[[F], F]:
    """``--toolchain``; `all` where a command can take both."""
    names = ["gcc", "llvm", *(["all"] if allow_all else [])]
    return click.option("--toolchain", type=click.Choice(names), default="gcc", show_default=True, help="Compiler.")


def toolchains(chosen: str) -> tuple[str, ...]:
    """The toolchains that `--toolchain` names."""
    return ("gcc", "llvm") if chosen == "all" else (chosen,)


def build_and_run(*, allow_all: bool) -> Callable[[F], F]:
    """The options of a command that builds an application and runs it: toolchain, opt, jobs, timeout, work, as_json."""

    def add(function: F) -> F:
        for option in (JSON, WORK, TIMEOUT, JOBS, OPT, toolchain(allow_all=allow_all)):
            function = option(function)
        return function

    return add


class OverrideType(_ParamType):
    """KEY=VALUE."""

    name = "override"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Read the text. Fails as a usage error that states the rule."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not key or not equals or not text:
            self.fail(f"'{value}' is not KEY=VALUE, as attention.sliding_window=4096", param, ctx)
        return key, text


_READING = (
    click.option("--family", metavar="NAME|FILE.toml", help="The checkpoint's family, or a file that describes it."),
    click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        type=OverrideType(),
        multiple=True,
        help="Read the checkpoint otherwise than it says; the keys are those that inspect prints.",
    ),
    click.option("--moe-expert-count", metavar="N", type=IntegerType(1), help="The same as --set experts.count=N."),
    click.option("--moe-top-k", metavar="K", type=IntegerType(1), help="The same as --set experts.per_token=K."),
    click.option("--gating-softmax", is_flag=True, help="The same as --set router.score=softmax."),
    click.option("--gating-bias-zero", is_flag=True, help="The same as --set router.correction=zero."),
)


_SPELLINGS = {"moe_expert_count": "experts.count", "moe_top_k": "experts.per_token"}
_FLAGS = {"gating_softmax": ("router.score", "softmax"), "gating_bias_zero": ("router.correction", "zero")}


def _stated(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Every KEY=VALUE, whichever way it was spelt."""
    numbers = [(key, str(values[name])) for name, key in _SPELLINGS.items() if values.get(name) is not None]
    return [*(values.get("overrides") or ()), *numbers, *(pair for name, pair in _FLAGS.items() if values.get(name))]


def reading_options(function: F) -> F:
    """The options that say how a checkpoint is read; `reading_from` gives them."""
    for option in reversed(_READING):
        function = option(function)
    return function


def reading_from(values: dict[str, Any]) -> Reading:
    """What the user says against the checkpoint; no such options: nothing. Raises UsageError for a key that is there twice."""
    stated = _stated(values)
    keys = [key for key, _ in stated]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise UsageError(f"--set {twice}", expected="it once", got="two values", hint="leave one out")
    return Reading(values.get("family"), tuple(stated))


_SETTINGS = (
    click.option(
        "-q", "--quant", metavar="QUANT", help="f32, bf16, f16, q8[:GROUP], q4[:GROUP] or PART=FORMAT,... [q8]"
    ),
    click.option("--kv", type=click.Choice(["f32", "f16", "q8"]), help="Format of the KV cache. [f32]"),
    click.option("--max-seq", type=IntegerType(1), help="Context length in tokens. [the checkpoint's]"),
    click.option(
        "--max-source", type=IntegerType(1), help="Longest source of an encoder, in tokens. [the checkpoint's]"
    ),
    click.option("--weights-addr", type=IntegerType(), help="Address of the image. [the board's]"),
    click.option("--expert-align", type=AlignType(), help="line, sector or bytes: where an expert may start. [line]"),
    click.option(
        "--text",
        metavar="BYTES",
        type=IntegerType(1, 1 << 16),
        help="Put the tokenizer into the image, for the application text and prompts of up to so many bytes. [not]",
    ),
    click.option("--name", "prefix", type=PrefixType(), help="Symbol prefix of this model's C interface."),
)
_KERNELS = click.option("--kernels", metavar="SET", help="Kernel set that the image is laid out for. [the board's]")


def settings_options(function: F) -> F:
    """The options that decide what is packed; `settings_from` and `reading_from` give them."""
    return settings_options_of_bench(_KERNELS(function))


def settings_options_of_bench(function: F) -> F:
    """`settings_options` without --kernels, which means something else to bench."""
    for option in reversed((*_SETTINGS, *_READING)):
        function = option(function)
    return function


SETTING_NAMES = ("quant", "kv", "max_seq", "max_source", "weights_addr", "expert_align", "kernels", "prefix", "text")
NO_SETTINGS: dict[str, Any] = {**dict.fromkeys(SETTING_NAMES), "family": None, "overrides": ()}
"""The values of `settings_options` where none is given."""


def settings_from(values: dict[str, Any]) -> Settings:
    """Settings from the values of `settings_options`; an option that was not given is None."""
    return Settings(
        policy=Policy.parse(values["quant"] or "q8"),
        kv=values["kv"] or "f32",
        max_seq=values["max_seq"],
        max_source=values["max_source"],
        weights_address=values["weights_addr"],
        expert_align=values["expert_align"] or "line",
        kernels=values["kernels"],
        prefix=values["prefix"],
        text_bytes=values["text"],
    )


def given_settings(values: dict[str, Any]) -> dict[str, str]:
    """The settings options that were on the command line, and their values, spelt as there."""
    spelling = {"quant": "-q", "prefix": "--name"}
    given = {
        spelling.get(name, "--" + name.replace("_", "-")): f"{value:#x}" if name == "weights_addr" else str(value)
        for name in SETTING_NAMES
        if (value := values[name]) is not None
    }
    return given | reading_words(reading_from(values))


def reading_words(reading: Reading) -> dict[str, str]:
    """How a reading is spelt on a command line."""
    words = {} if reading.family is None else {"--family": reading.family}
    return words | {f"--set {key}": value for key, value in reading.overrides}
