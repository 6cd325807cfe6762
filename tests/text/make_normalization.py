# SPDX-License-Identifier: Apache-2.0
"""Write scripts/colibri/text/normalization.txt: canonical decompositions and combining classes as tokenizers has them.

    python tests/text/make_normalization.py

Everything is asked of the package: a combining class is found from which marks it is sorted before and after.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tokenizers
from tokenizers.normalizers import NFC, NFD

OUT = Path(__file__).resolve().parents[2] / "scripts" / "colibri" / "text" / "normalization.txt"
ALL = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000 and code != ord("\n")]
HANGUL = range(0xAC00, 0xD7A4)
# A mark of each class that there is; Unicode 3.1 has them all.
MARKS = {
    1: 0x334, 6: 0x16FF0, 7: 0x93C, 8: 0x3099, 9: 0x94D, **{c: 0x5B0 + c - 10 for c in range(10, 19)}, 19: 0x5B9, 20: 0x5BB,
    21: 0x5BC, 22: 0x5BD, 23: 0x5BF, 24: 0x5C1, 25: 0x5C2, 26: 0xFB1E, **{c: 0x64B + c - 27 for c in range(27, 35)},
    35: 0x670, 36: 0x711, 84: 0xC55, 91: 0xC56, 103: 0xE38, 107: 0xE48, 118: 0xEB8, 122: 0xEC8, 129: 0xF71, 130: 0xF72,
    132: 0xF74, 202: 0x321, 214: 0x1DCE, 216: 0x31B, 218: 0x302A, 220: 0x316, 222: 0x59A, 224: 0x302E, 226: 0x1D16D,
    228: 0x5AE, 230: 0x300, 232: 0x315, 233: 0x35C, 234: 0x35D, 240: 0x345,
}  # fmt: skip


def mapped(normalizer: NFC | NFD, texts: list[str]) -> list[str]:
    """Each text normalised, all in one go."""
    return str(normalizer.normalize_str("\n".join(texts))).split("\n")


def combining_classes() -> dict[str, int]:
    """The class of every character that has one."""
    below = {
        c: i for c, i in zip(ALL, mapped(NFD(), ["\u0345" + c for c in ALL]), strict=True) if not i.startswith("\u0345")
    }
    marks = [c for c in below if mapped(NFD(), [c]) == [c]] + ["\u0345"]
    classes = dict.fromkeys(marks, 0)
    for number, code in MARKS.items():
        mark = chr(code)
        if mark not in classes:
            continue  # newer than the package
        # x stays behind a mark exactly where its class is not below the mark's
        for c, text in zip(marks, mapped(NFD(), [mark + c for c in marks]), strict=True):
            if text.startswith(mark):
                classes[c] = max(classes[c], number)
    return classes


def main() -> None:
    """Write the file."""
    lines = [
        f"# By tokenizers {tokenizers.__version__}: M mark, combining class; D character, its canonical decomposition;"
    ]
    lines.append(
        "# P the same where decomposition and composition undo each other. Hangul syllables follow a rule and are left out."
    )
    lines += [f"M {ord(c):04X} {number}" for c, number in sorted(combining_classes().items())]
    rest = [c for c in ALL if ord(c) not in HANGUL]
    apart = mapped(NFD(), rest)
    together = mapped(NFC(), rest)
    for c, d, t in zip(rest, apart, together, strict=True):
        if c != d:
            if t == c:
                start = mapped(NFC(), [d[:-1]])[0]
                assert len(start) == 1, (c, d)
                lines.append(f"P {ord(c):04X} {ord(start):04X} {ord(d[-1]):04X}")
            else:
                lines.append(f"D {ord(c):04X} " + " ".join(f"{ord(x):04X}" for x in d))
    OUT.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
