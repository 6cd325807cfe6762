/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

colibri_sincos_t colibri_sincos(float t)
{
    float shifted = t * COLIBRI_TWO_OVER_PI + COLIBRI_RINT_MAGIC;
    float k = shifted - COLIBRI_RINT_MAGIC;
    uint32_t quadrant = colibri_bits(shifted) & 3u;
    float r = colibri_fma(-k, COLIBRI_PIO2_A, t);
    r = colibri_fma(-k, COLIBRI_PIO2_B, r);
    r = colibri_snap(colibri_fma(-k, COLIBRI_PIO2_C, r));
    float r2 = r * r;
    float a = colibri_fma(colibri_fma(COLIBRI_S7, r2, COLIBRI_S5), r2, COLIBRI_S3);
    float sin_r = colibri_fma(a * r2, r, r);
    float b = colibri_fma(colibri_fma(colibri_fma(COLIBRI_C8, r2, COLIBRI_C6), r2, COLIBRI_C4), r2, -0.5f);
    float cos_r = colibri_fma(b, r2, 1.0f);

    /* Quadrants 0 to 3: (s, c), (c, -s), (-s, -c), (-c, s). */
    uint32_t odd = colibri_mask_of_bit(quadrant & 1u);
    uint32_t s = colibri_bits(sin_r);
    uint32_t c = colibri_bits(cos_r);
    colibri_sincos_t out;
    out.sin = colibri_snap(colibri_from_bits(colibri_select(odd, c, s) ^ (quadrant >> 1 << 31)));
    out.cos = colibri_snap(colibri_from_bits(colibri_select(odd, s, c) ^ ((quadrant + 1u) >> 1 << 31)));
    return out;
}
