# SPDX-License-Identifier: Apache-2.0
"""Constants of the arithmetic contract (docs/NUMERICS.md), written once: the C header is generated from here.

Polynomials: minimax fits of relative error (Lawson iteration), then rounded to float32. exp on [-ln2/2, ln2/2];
sin and cos on [-pi/4, pi/4]; T (tanh) on [0, 0.625]; P in t / (3 + t), t in [0, 7.6]: the normal distribution function of -t
over exp(-t * t / 2), fitted to a tenth of the weight beyond 3.5. G1 and G3 are 2 * sqrt(2/pi) and 0.044715 times that.
LN2_* and PIO2_* are Cody-Waite splits of ln 2 and pi/2 into float32 parts.
"""

from __future__ import annotations

SNAP_BITS = 0x2B800000
"""Bits of 2**-40: smaller magnitudes become +0.0."""

RANGE_BITS = 0x58800000
"""Bits of 2**50: a range-checked vector stays below."""

AMAX_ZERO_BITS = 0x2F000000
"""Bits of 2**-33: a vector whose amax is smaller quantises to zeros with scale 0."""

EXP_MIN = -28.0

COEFFICIENTS: dict[str, float] = {
    "LOG2E": float.fromhex("0x1.715476p+0"),
    "LN2_HI": float.fromhex("0x1.62e430p-1"),
    "LN2_LO": float.fromhex("-0x1.05c610p-29"),
    "E2": float.fromhex("0x1.fffffcp-2"),
    "E3": float.fromhex("0x1.555492p-3"),
    "E4": float.fromhex("0x1.5558f2p-5"),
    "E5": float.fromhex("0x1.1239e2p-7"),
    "E6": float.fromhex("0x1.6a2434p-10"),
    "TWO_OVER_PI": float.fromhex("0x1.45f306p-1"),
    "PIO2_A": float.fromhex("0x1.921fb6p+0"),
    "PIO2_B": float.fromhex("-0x1.777a5cp-25"),
    "PIO2_C": float.fromhex("-0x1.ee59dap-50"),
    "S3": float.fromhex("-0x1.555546p-3"),
    "S5": float.fromhex("0x1.11073ap-7"),
    "S7": float.fromhex("-0x1.994388p-13"),
    "C4": float.fromhex("0x1.55554ap-5"),
    "C6": float.fromhex("-0x1.6c0c32p-10"),
    "C8": float.fromhex("0x1.99eb4ap-16"),
    "T3": float.fromhex("-0x1.555532p-2"),
    "T5": float.fromhex("0x1.110726p-3"),
    "T7": float.fromhex("-0x1.b83c5ap-5"),
    "T9": float.fromhex("0x1.522698p-6"),
    "T11": float.fromhex("-0x1.75e1c2p-8"),
    "G1": float.fromhex("0x1.988454p+0"),
    "G3": float.fromhex("0x1.2444f2p-4"),
    "P1": float.fromhex("-0x1.326374p+0"),
    "P2": float.fromhex("0x1.0da468p+0"),
    "P3": float.fromhex("-0x1.27bb7cp-2"),
    "P4": float.fromhex("-0x1.2bfe2cp-3"),
    "P5": float.fromhex("0x1.05d706p-6"),
    "P6": float.fromhex("0x1.c95e80p-4"),
    "P7": float.fromhex("-0x1.910a5ep-5"),
}
"""Name -> value; each is a float32."""

PCG32_MULTIPLIER = 6364136223846793005
PCG32_INCREMENT = 1442695040888963407
