/* SPDX-License-Identifier: Apache-2.0 */
/* binary16 from and to binary32, for cores without the conversions. Neither branches. */
#ifndef COLIBRI_HALF_H
#define COLIBRI_HALF_H

#include "../kernels.h"

/* binary16 through the integer of its significand: exact, and no operand is subnormal (flushing one would lose it). The
 * smallest value is 2**-24, so the only work left for the contract's snap is -0.0, and the integer 0 has no sign.
 */
static inline float colibri_widen_half(uint16_t half)
{
    uint32_t exponent = (uint32_t)half >> 10 & 31u;
    uint32_t normal = (exponent + 31u) >> 5; /* 1 where the exponent is not 0 */
    uint32_t significand = ((uint32_t)half & 0x3ffu) | normal << 10;
    uint32_t sign = colibri_mask_of_bit((uint32_t)half >> 15);
    uint32_t scale = (exponent + (normal ^ 1u) - 25u + 127u) << 23;
    return (float)(int32_t)((significand ^ sign) - sign) * colibri_from_bits(scale);
}

/* Rounded to nearest even. MUST: |value| < 65520, snapped. Below 2**-14 the result is a multiple of 2**-24, which is the last place
 * of a sum with one half: that addition rounds.
 */
static inline uint16_t colibri_narrow_half(float value)
{
    uint32_t magnitude = colibri_magnitude(value);
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    uint32_t small = colibri_bits(colibri_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t half = colibri_select(colibri_mask_below(magnitude, 0x38800000u), small, normal);
    return (uint16_t)(half | (colibri_bits(value) >> 31) << 15);
}

#endif
