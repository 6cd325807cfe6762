/* SPDX-License-Identifier: Apache-2.0 */
/* binary32 square root in integers, for cores without the instruction: correctly rounded, digit by digit.
 *
 * The significand (24 or 25 bits, so that the exponent is even) gives 24 bits of root and a remainder; one more bit decides the
 * rounding, and a root is never half-way between two floats.
 */
#include "../arith.h"

#if !COLIBRI_ISA_SQRT

float colibri_sqrt_portable(float value)
{
    uint32_t bits = colibri_bits(value);
    if ((bits & 0x7fffffffu) == 0 || bits == 0x7f800000u) {
        return value;
    }
    if (bits > 0x7f800000u) { /* negative or NaN */
        return colibri_from_bits(0x7fc00000u);
    }
    int32_t exponent = (int32_t)(bits >> 23);
    uint32_t significand = bits & 0x7fffffu;
    if (exponent == 0) {
        exponent = 1;
        while (significand < 0x800000u) {
            significand <<= 1;
            exponent--;
        }
    }
    significand |= 0x800000u;
    exponent -= 127;
    if (exponent & 1) {
        significand <<= 1;
        exponent--;
    }

    /* value = significand * 2**(exponent - 23). Root of significand * 2**25, 25 bits: two bits of the radicand a step. */
    uint32_t radicand = significand << 7; /* its top 32 of 50 bits; the others are zero */
    uint32_t root = 0;
    uint32_t remainder = 0;
    for (uint32_t i = 0; i < 25; i++) {
        remainder = remainder << 2 | radicand >> 30;
        radicand <<= 2;
        uint32_t trial = root << 2 | 1u;
        root <<= 1;
        if (remainder >= trial) {
            remainder -= trial;
            root |= 1u;
        }
    }
    root = (root + 1) >> 1; /* the 25th bit is one half and the rest is never 0 after it */
    return colibri_from_bits(((uint32_t)(exponent / 2 + 126) << 23) + root);
}

#endif
