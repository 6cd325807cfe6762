/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#include "../portable/table.h"

#if COLIBRI_QUANT_BYTES > 0

/* n elements with the scale of quantise.c as words, padded to 8 with zeros; returns their sum. */
static int32_t quantise32(int32_t *out, const float *x, uint32_t n, float inv)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        int32_t q = (int8_t)(uint8_t)colibri_bits(x[i] * inv + COLIBRI_RINT_MAGIC);
        out[i] = q;
        sum += q;
    }
    for (uint32_t i = n; i < COLIBRI_PAD8(n); i++) {
        out[i] = 0;
    }
    return sum;
}

static float scale_of(float *inv, const float *x, uint32_t n)
{
    uint32_t bits = COLIBRI_KERNEL_ABSMAX(x, n);
    uint32_t tiny = colibri_mask_below(bits, COLIBRI_AMAX_ZERO_BITS);
    float amax = colibri_from_bits(colibri_select(tiny, colibri_bits(1.0f), bits));
    *inv = 127.0f / amax;
    return colibri_from_bits(colibri_bits(amax / 127.0f) & ~tiny);
}

/* Words in order; before each group or segment what its sums begin with: minus the offsets of the weights (q8_sums.S, q4_sums.S). */
void colibri_quantise_vector_armv7m(void *quant, float *scales, const colibri_matrix_t *matrix, const float *x)
{
    const uint32_t is_q4 = matrix->dtype == COLIBRI_Q4;
    const uint32_t by_group = !is_q4 && matrix->group != 0;
    const uint32_t segment = is_q4 ? COLIBRI_Q4_GROUP_ELEMS : by_group ? matrix->group : COLIBRI_SEGMENT_ELEMS;
    int32_t *out = quant;
    float inv = 0.0f;
    for (uint32_t begin = 0; begin < matrix->cols; begin += segment) {
        const uint32_t n = colibri_min_u32(matrix->cols - begin, segment);
        if (by_group || begin == 0) {
            *scales++ = scale_of(&inv, x + begin, by_group ? n : matrix->cols);
        }
        int32_t *elements = out + (is_q4 ? COLIBRI_Q4_BEGIN_WORDS : COLIBRI_Q8_BEGIN_WORDS);
        const uint32_t sum = (uint32_t)quantise32(elements, x + begin, n, inv);
        if (is_q4) {
            out[0] = (int32_t)(0u - 8u * 0x11111111u * sum);
            out[1] = out[2] = out[3] = (int32_t)(0u - 8u * 0x00010001u * sum);
        } else {
            out[0] = out[1] = (int32_t)(0u - 128u * 0x01010101u * sum);
            out[2] = (int32_t)(0u - 128u * 0x0101u * sum);
        }
        out = elements + COLIBRI_PAD8(n);
    }
}

#endif
