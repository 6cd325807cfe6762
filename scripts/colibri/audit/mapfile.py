# SPDX-License-Identifier: Apache-2.0
"""GNU ld's map file: which object brought how many bytes, the answer to "what fills my flash?"."""

from __future__ import annotations

import re
from dataclasses import dataclass

_INPUT = re.compile(r"^ (\.[\w.$*-]+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$", re.MULTILINE)
_ENGINE = ("engine_", "kernels_")


@dataclass(frozen=True)
class Contribution:
    """One input section that was linked. object as the linker names it, `engine_router.c.o`."""

    section: str
    address: int
    bytes: int
    object: str


def contributions(text: str) -> list[Contribution]:
    """Every linked input section that takes memory, from the text of a map file."""
    _, _, linked = text.partition("Linker script and memory map")
    joined = re.sub(r"^( \.[\w.$*-]+)\n\s+", r"\1 ", linked, flags=re.MULTILINE)
    found = (Contribution(m[1], int(m[2], 16), int(m[3], 16), m[4]) for m in _INPUT.finditer(joined))
    return [
        c for c in found if c.bytes and not c.section.startswith((".debug", ".comment", ".ARM.attributes", ".note"))
    ]


def engine_bytes(parts: list[Contribution]) -> dict[str, int]:
    """Bytes of code and constants of the engine and its kernels, by input section."""
    sizes: dict[str, int] = {}
    for part in parts:
        if part.object.startswith(_ENGINE) and not part.section.startswith((".bss", ".data")):
            name = part.section.split(".", 2)[-1] if part.section.count(".") > 1 else f"{part.section} {part.object}"
            sizes[name] = sizes.get(name, 0) + part.bytes
    return dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))
