/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#include "../portable/table.h"

#if COLIBRI_QUANT_BYTES > 0

int32_t colibri_quantise16_armv7em(int16_t *out, const float *x, uint32_t n_units, float inv);

/* The scale of n elements, and its reciprocal: as in portable/quantise.c. */
static float scale_of(float *inv, const float *x, uint32_t n)
{
    uint32_t bits = COLIBRI_KERNEL_ABSMAX(x, n);
    uint32_t tiny = colibri_mask_below(bits, COLIBRI_AMAX_ZERO_BITS);
    float amax = colibri_from_bits(colibri_select(tiny, colibri_bits(1.0f), bits));
    *inv = 127.0f / amax;
    return colibri_from_bits(colibri_bits(amax / 127.0f) & ~tiny);
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* int16 in order. q8:G has a scale a group, here behind the group too; q4 has before each group what its four sums begin with: minus
 * the eights in the digits (matvec_q4_blocks.S). x is zero-padded to whole units, and so is what is written.
 */
void colibri_quantise_vector_armv7em(void *quant, float *scales, const colibri_matrix_t *matrix, const float *x)
{
    const uint32_t n = matrix->cols;
    const uint32_t group = matrix->group != 0 ? matrix->group : COLIBRI_SEGMENT_UNITS * 8;
    int32_t *out = quant;
    float inv;
    if (matrix->dtype == COLIBRI_Q8 && matrix->group == 0) {
        scales[0] = scale_of(&inv, x, n);
        (void)colibri_quantise16_armv7em(quant, x, COLIBRI_PAD8(n) / 8, inv);
    } else if (matrix->dtype == COLIBRI_Q8) {
        for (uint32_t begin = 0; begin < n; begin += group) {
            uint32_t n_units = COLIBRI_PAD8(min_u32(group, n - begin)) / 8;
            float scale = scale_of(&inv, x + begin, min_u32(group, n - begin));
            (void)colibri_quantise16_armv7em((int16_t *)out, x + begin, n_units, inv);
            out += n_units * 4;
            *out++ = (int32_t)colibri_bits(scale);
            *scales++ = scale;
        }
    } else {
        scales[0] = scale_of(&inv, x, n);
        for (uint32_t begin = 0; begin < n; begin += group) {
            uint32_t n_units = COLIBRI_PAD8(min_u32(group, n - begin)) / 8;
            int32_t eights = -8 * colibri_quantise16_armv7em((int16_t *)(out + 4), x + begin, n_units, inv);
            out[0] = eights;
            out[1] = eights * 17;
            out[2] = eights * 257;
            out[3] = eights * 273;
            out += 4 + n_units * 4;
        }
    }
}

#endif
