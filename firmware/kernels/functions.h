/* SPDX-License-Identifier: Apache-2.0 */
/* exp and silu of docs/NUMERICS.md, section 6, inline so that a kernel's loop holds its constants in registers. None branches. */
#ifndef COLIBRI_KERNEL_FUNCTIONS_H
#define COLIBRI_KERNEL_FUNCTIONS_H

#include "arith.h"

/* exp(max(x, -28)). MUST: x <= 0. Result 0 or 2**-40 to 1. */
static inline float colibri_exp(float x)
{
    const uint32_t limit = colibri_bits(COLIBRI_EXP_LIMIT);
    uint32_t magnitude = colibri_magnitude(x);
    magnitude = colibri_select(colibri_mask_below(magnitude, limit), magnitude, limit);
    x = colibri_from_bits(magnitude | 0x80000000u);

    float shifted = x * COLIBRI_LOG2E + COLIBRI_RINT_MAGIC;
    float k = shifted - COLIBRI_RINT_MAGIC;
    float r = colibri_fma(-k, COLIBRI_LN2_HI, x);
    r = colibri_fma(-k, COLIBRI_LN2_LO, r);
    float p = COLIBRI_E6;
    p = colibri_fma(p, r, COLIBRI_E5);
    p = colibri_fma(p, r, COLIBRI_E4);
    p = colibri_fma(p, r, COLIBRI_E3);
    p = colibri_fma(p, r, COLIBRI_E2);
    p = colibri_fma(p, r, 1.0f);
    p = colibri_fma(p, r, 1.0f);
    /* k is in the low bits of shifted; those above leave the word. BOUND: k >= -41 and p > 0.7, so the exponent stays normal. */
    return colibri_snap(colibri_from_bits(colibri_bits(p) + (colibri_bits(shifted) << 23)));
}

/* x * sigmoid(x), any finite snapped x. The contract snaps the sigmoid too, which changes nothing: where e < 2**-24, 1 + e rounds
 * to 1 and the sigmoid is e, a snapped value; where it is not, the sigmoid is at least 2**-25.
 */
static inline float colibri_silu(float x)
{
    float e = colibri_exp(colibri_from_bits(colibri_bits(x) | 0x80000000u));
    uint32_t negative = colibri_mask_of_bit(colibri_bits(x) >> 31);
    float numerator = colibri_from_bits(colibri_select(negative, colibri_bits(e), colibri_bits(1.0f)));
    return colibri_snap(x * (numerator / (1.0f + e)));
}

#endif
