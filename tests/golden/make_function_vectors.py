# SPDX-License-Identifier: Apache-2.0
"""Write data/functions.csv: each function of NUMERICS section 6 at 200 binary32 arguments, to 40 digits.

    python tests/golden/make_function_vectors.py

Needs mpmath (1.4.1 was used, at 60 digits), which nothing else here does. The arguments are drawn from a fixed seed,
evenly over the exponents of the domain that docs/NUMERICS.md section 6 gives, after the ends and some special ones.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-not-found]  # only this script needs it

DIGITS = 40
N = 200
FIRST = {
    "exp": ["0x0p+0", "-0x1p-40", "-0x1.62e43p-1", "-0x1.62e43p-2", "-0x1.bp+4", "-0x1.bb9p+4", "-0x1p+0"],
    "sigmoid": ["0x0p+0", "0x1p-40", "-0x1p-40", "0x1p+0", "-0x1p+0", "-0x1.bp+4", "0x1.bp+4", "-0x1.bb9p+4"],
    "sin": ["0x0p+0", "0x1p-40", "0x1.921fb6p+0", "0x1.921fb6p-1", "0x1.921fb6p+1", "0x1.fffffep+19", "0x1.2d97c8p+2"],
    "cos": ["0x0p+0", "0x1p-40", "0x1.921fb6p+0", "0x1.921fb6p-1", "0x1.921fb6p+1", "0x1.fffffep+19", "0x1.2d97c8p+2"],
    "tanh": ["0x0p+0", "0x1p-40", "-0x1p-40", "0x1.4p-1", "-0x1.3ffffep-1", "0x1.2p+3", "0x1p+4", "0x1.3f65aap+0"],
    "gelu_tanh": ["0x0p+0", "0x1p-40", "-0x1p-40", "0x1p+0", "-0x1p+0", "-0x1.7dc2b6p+2", "0x1p+4", "0x1.87c0bep-2"],
    "gelu_erf": ["0x0p+0", "0x1p-40", "-0x1p-40", "0x1p+0", "-0x1p+0", "-0x1.8cba5ap+2", "0x1p+4", "0x1.e1e058p-5"],
}
# lowest and one past the highest exponent drawn, signs, largest magnitude
DRAWN = {
    "exp": (-24, 5, "-", 27.7),
    "sigmoid": (-24, 5, "+-", 27.7),
    "sin": (-24, 20, "+", 2.0**20),
    "cos": (-12, 20, "+", 2.0**20),
    "tanh": (-24, 4, "+-", 16.0),
    "gelu_tanh": (-24, 3, "+-", 6.0),
    "gelu_erf": (-24, 3, "+-", 7.1),
}


def gelu_tanh(x: Any) -> Any:
    return x * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))) / 2


FUNCTIONS = {
    "exp": mpmath.exp,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tanh": mpmath.tanh,
    "gelu_tanh": gelu_tanh,
    "gelu_erf": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
}


def arguments(name: str) -> list[float]:
    """N binary32 values in the domain of the function."""
    rng = random.Random(f"colibri {name}")
    values = [float.fromhex(x) for x in FIRST[name]]
    low, high, signs, largest = DRAWN[name]
    while len(values) < N:
        x = (1 + rng.getrandbits(23) / 2**23) * 2.0 ** rng.randrange(low, high)
        if x <= largest:
            values.append(-x if rng.choice(signs) == "-" else x)
    return values


def main() -> None:
    """Write the file."""
    mpmath.mp.dps = 60
    lines = ["function,argument_bits,value"]
    for name, function in FUNCTIONS.items():
        for x in arguments(name):
            bits = struct.unpack("<I", struct.pack("<f", x))[0]
            lines.append(f"{name},0x{bits:08x},{mpmath.nstr(function(mpmath.mpf(x)), DIGITS)}")
    path = Path(__file__).parent / "data" / "functions.csv"
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
