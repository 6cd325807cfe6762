# SPDX-License-Identifier: Apache-2.0
"""Which part of a model is stored in which format: the grammar of ``-q``.

    QUANT  = FORMAT | PART=FORMAT{,PART=FORMAT}
    FORMAT = f32 | bf16 | f16 | q8[:GROUP] | q4[:GROUP]      GROUP = row | 32 | 64 | 128   (q8: row, q4: 32)
    PART   = default | embedding | attention | dense | experts | shared | head

A bare q4 leaves embedding and head at q8. Router, norms and biases are always float32 and no parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from colibri.errors import UsageError
from colibri.model import ModelConfig
from colibri.quantise.formats import GROUPS, Format

PARTS = ("embedding", "attention", "dense", "experts", "shared", "head")
_FLOAT = Format("f32")
_HINT = "e.g. -q q8, -q q8:64, -q q4 or -q default=q4,embedding=q8"

_PART_OF = (
    (re.compile(r"embed\.weight"), "embedding"),
    (re.compile(r"head\.weight"), "head"),
    (re.compile(r"layers\.\d+\.attn\.(experts\.\d+\.)?(q|k|v|o|gate|q_a|kv_a|k_up|v_up)\.weight"), "attention"),
    (re.compile(r"layers\.\d+\.conv\.(in|out)\.weight"), "attention"),
    (re.compile(r"layers\.\d+\.ffn\.(gate|up|down)\.weight"), "dense"),
    (re.compile(r"layers\.\d+\.experts\.\d+\.(gate|up|down)\.weight"), "experts"),
    (re.compile(r"layers\.\d+\.shared\.(gate|up|down)\.weight"), "shared"),
)


def part_of(tensor_name: str) -> str | None:
    """The part a tensor belongs to; None for routers, norms, biases, sinks and convolution taps, which stay float32."""
    for pattern, part in _PART_OF:
        if pattern.fullmatch(tensor_name):
            return part
    return None


@dataclass(frozen=True)
class Policy:
    """A format for each part, in the order of PARTS."""

    formats: tuple[Format, ...]

    @staticmethod
    def parse(text: str) -> Policy:
        """Read ``-q``'s grammar. Raises UsageError."""
        if "=" not in text:
            format_ = parse_format(text)
            if format_.kind == "q4":
                return Policy(tuple(Format("q8") if p in ("embedding", "head") else format_ for p in PARTS))
            return Policy((format_,) * len(PARTS))
        chosen: dict[str, Format] = {}
        for item in text.split(","):
            part, _, value = item.partition("=")
            if part not in (*PARTS, "default"):
                raise UsageError(
                    f"-q {text}",
                    expected=f"a part among default, {', '.join(PARTS)}",
                    got=f"'{part}'",
                    hint="router, norms and biases are always float32" if part in _NEVER else _HINT,
                )
            if part in chosen:
                raise UsageError(f"-q {text}", expected="each part once", got=f"'{part}' twice", hint=_HINT)
            chosen[part] = parse_format(value)
        default = chosen.get("default")
        if default is None and any(p not in chosen for p in PARTS):
            missing = ", ".join(p for p in PARTS if p not in chosen)
            raise UsageError(
                f"-q {text}",
                expected="a format for every part",
                got=f"none for {missing}",
                hint=f"add default=q8: -q default=q8,{text}",
            )
        return Policy(tuple(chosen.get(p, default or _FLOAT) for p in PARTS))

    def __str__(self) -> str:
        """The canonical spelling: the one that goes into manifest, image header and JSON."""
        by_part = dict(zip(PARTS, self.formats, strict=True))
        first = by_part["attention"]
        if str(first).startswith("q4") and self == Policy.parse(str(first)):
            return str(first)
        if len(set(self.formats)) == 1:
            return f"default={first}" if first.kind == "q4" else str(first)
        items = [f"default={first}"] + [f"{p}={f}" for p, f in by_part.items() if f != first]
        return ",".join(items)

    def resolve(self, config: ModelConfig) -> Policy:
        """The policy as the model can have it: a tied head follows the embedding, absent parts follow attention."""
        by_part = dict(zip(PARTS, self.formats, strict=True))
        present = {part_of(name) for name in config.tensor_shapes()}
        if config.tied_head:
            by_part["head"] = by_part["embedding"]
            present.add("head")
        return Policy(tuple(by_part[p] if p in present else by_part["attention"] for p in PARTS))

    def format_of(self, tensor_name: str) -> Format:
        """The format of a tensor of the intermediate representation."""
        part = part_of(tensor_name)
        return self.formats[PARTS.index(part)] if part is not None else _FLOAT


_NEVER = ("router", "norm", "norms", "bias", "biases")


def parse_format(text: str) -> Format:
    """Read FORMAT. Raises UsageError."""
    kind, colon, group = text.partition(":")
    if kind in ("q8", "q4") and (not colon or group in ("row", *map(str, GROUPS))):
        default = "row" if kind == "q8" else "32"
        group = group or default
        return Format("q8" if kind == "q8" else "q4", 0 if group == "row" else int(group))
    match kind:
        case "f32" | "bf16" | "f16" if not colon:
            return Format(kind)
    raise UsageError(
        f"-q {text}", expected="f32, bf16, f16, q8 or q4 with [:row|32|64|128]", got=f"'{text}'", hint=_HINT
    )
