/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#if COLIBRI_NEEDS_SIGMOID || COLIBRI_HAS_ACT_GELU_ERF
/* All ones where x is negative. */
static uint32_t mask_negative(float x)
{
    return 0u - (colibri_bits(x) >> 31);
}
#endif

#if COLIBRI_HAS_ROUTER_HIDDEN || COLIBRI_HAS_ACT_GELU_TANH || COLIBRI_HAS_ACT_GELU_ERF
/* The smaller of |x| and a positive limit. */
static float magnitude_up_to(float x, float limit)
{
    uint32_t magnitude = colibri_magnitude(x);
    uint32_t bound = colibri_bits(limit);
    return colibri_from_bits(colibri_select(colibri_mask_below(magnitude, bound), magnitude, bound));
}
#endif

#if COLIBRI_NEEDS_SIGMOID
float colibri_sigmoid(float x)
{
    float e = colibri_exp(x); /* of -|x| */
    float numerator = colibri_from_bits(colibri_select(mask_negative(x), colibri_bits(e), colibri_bits(1.0f)));
    return colibri_snap(numerator / (1.0f + e));
}
#endif

#if COLIBRI_HAS_ROUTER_HIDDEN
float colibri_tanh(float x)
{
    const uint32_t limit = colibri_bits(0.625f);
    float t = colibri_from_bits(colibri_magnitude(x));
    float e = colibri_exp(-2.0f * t);
    float large = (1.0f - e) / (1.0f + e);
    float c = magnitude_up_to(x, 0.625f);
    float c2 = c * c;
    float p = COLIBRI_T11;
    p = colibri_fma(p, c2, COLIBRI_T9);
    p = colibri_fma(p, c2, COLIBRI_T7);
    p = colibri_fma(p, c2, COLIBRI_T5);
    p = colibri_fma(p, c2, COLIBRI_T3);
    float small = colibri_fma(p * c2, c, c);
    uint32_t y = colibri_select(colibri_mask_below(colibri_bits(t), limit), colibri_bits(small), colibri_bits(large));
    return colibri_snap(colibri_from_bits(y | (colibri_bits(x) & 0x80000000u)));
}
#endif

#if COLIBRI_HAS_ACT_GELU_TANH
float colibri_gelu_tanh(float x)
{
    float a = colibri_from_bits(colibri_bits(magnitude_up_to(x, 16.0f)) | (colibri_bits(x) & 0x80000000u));
    return colibri_snap(x * colibri_sigmoid(a * colibri_fma(a * a, COLIBRI_G3, COLIBRI_G1)));
}
#endif

#if COLIBRI_HAS_ACT_GELU_ERF
float colibri_gelu_erf(float x)
{
    float t = magnitude_up_to(x, 16.0f);
    float e = colibri_exp(colibri_snap(-0.5f * (t * t)));
    float m = t / (3.0f + t);
    float p = COLIBRI_P7;
    p = colibri_fma(p, m, COLIBRI_P6);
    p = colibri_fma(p, m, COLIBRI_P5);
    p = colibri_fma(p, m, COLIBRI_P4);
    p = colibri_fma(p, m, COLIBRI_P3);
    p = colibri_fma(p, m, COLIBRI_P2);
    p = colibri_fma(p, m, COLIBRI_P1);
    p = colibri_fma(p, m, 0.5f);
    float q = e * p;
    return colibri_snap(x * colibri_from_bits(colibri_select(mask_negative(x), colibri_bits(q), colibri_bits(1.0f - q))));
}
#endif

#if COLIBRI_HAS_ROPE
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
#endif
