/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#if COLIBRI_USE_Q4

void colibri_widen_q4_armv7em(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const uint32_t group = matrix->group != 0 ? matrix->group : COLIBRI_SEGMENT_UNITS * 8;
    const uint32_t lane = row % 4;
    const uint32_t sign = 8u & colibri_mask_equal(lane, 3);
    const uint8_t *block = weights + (size_t)(row / 4) * 4 * matrix->row_bytes;
    const float row_scale = ((const float *)(const void *)(block + (size_t)4 * matrix->row_bytes - 16))[lane];
    for (uint32_t begin = 0; begin < matrix->cols; begin += group) {
        const uint32_t left = matrix->cols - begin;
        const uint32_t n = left < group ? left : group;
        const float scale = (float)block[(size_t)COLIBRI_PAD8(n) * 2 + lane] * row_scale;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t digit = (uint32_t)block[(size_t)i * 2 + lane / 2] >> lane % 2 * 4 & 15u;
            /* the highest digit of a halfword is in two's complement, the others are 8 too large */
            out[begin + i] = colibri_snap((float)((int32_t)(digit ^ sign) - 8) * scale);
        }
        block += (size_t)COLIBRI_PAD8(n) * 2 + 4;
    }
}

#endif
