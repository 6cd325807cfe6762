# SPDX-License-Identifier: Apache-2.0
"""The C header of the constants in `colibri.numerics`.

`python -m colibri.build.coefficients > firmware/kernels/coefficients.h` writes it.
"""

from __future__ import annotations

from colibri import numerics


def _hex_float(value: float) -> str:
    """Return a C11 hexadecimal float constant of exactly this float32."""
    mantissa, exponent = value.hex().split("p")
    text = f"{mantissa.rstrip('0')}p{exponent}f"
    return f"({text})" if value < 0 else text


def coefficients_header() -> str:
    """Return the whole text of `firmware/kernels/coefficients.h`."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "/* Generated from scripts/colibri/numerics.py by colibri.build.coefficients: do not edit. */",
        "#ifndef COLIBRI_COEFFICIENTS_H",
        "#define COLIBRI_COEFFICIENTS_H",
        "",
        "/* Thresholds as bits of binary32. */",
        f"#define COLIBRI_SNAP_BITS 0x{numerics.SNAP_BITS:08x}u",
        f"#define COLIBRI_RANGE_BITS 0x{numerics.RANGE_BITS:08x}u",
        f"#define COLIBRI_AMAX_ZERO_BITS 0x{numerics.AMAX_ZERO_BITS:08x}u",
        "",
        "/* exp's argument is clamped to -COLIBRI_EXP_LIMIT. */",
        f"#define COLIBRI_EXP_LIMIT {_hex_float(-numerics.EXP_MIN)}",
        "",
        *(f"#define COLIBRI_{name} {_hex_float(value)}" for name, value in numerics.COEFFICIENTS.items()),
        "",
        f"#define COLIBRI_PCG32_MULTIPLIER {numerics.PCG32_MULTIPLIER}ull",
        f"#define COLIBRI_PCG32_INCREMENT {numerics.PCG32_INCREMENT}ull",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(coefficients_header())
