/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#if COLIBRI_USE_Q4

void colibri_widen_q4_armv7m(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const uint32_t lane = row % 8;
    const uint8_t *block = weights + (size_t)(row / 8) * 8 * matrix->row_bytes;
    const float row_scale = (colibri_scales_at(block + (size_t)8 * matrix->row_bytes) - 8)[lane];
    for (uint32_t begin = 0; begin < matrix->cols; begin += COLIBRI_Q4_GROUP_ELEMS) {
        const uint32_t n = colibri_min_u32(matrix->cols - begin, COLIBRI_Q4_GROUP_ELEMS);
        const uint8_t *end = block + (size_t)COLIBRI_PAD8(n) * 4;
        const float scale = (float)end[lane] * row_scale;
        for (uint32_t i = 0; i < n; i++) {
            const int32_t digit = block[4 * i + lane / 2] >> lane % 2 * 4 & 15;
            out[begin + i] = colibri_snap((float)(digit - 8) * scale);
        }
        block = end + 8;
    }
}

#endif
