/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP

void colibri_widen_q8_armv7em(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const uint32_t group = matrix->group != 0 ? matrix->group : matrix->cols;
    const uint32_t lane = row % 4;
    const uint32_t is_odd = colibri_mask_of_bit(lane % 2);
    const uint8_t *block = weights + (size_t)(row / 4) * 4 * matrix->row_bytes;
    for (uint32_t begin = 0; begin < matrix->cols; begin += group) {
        const uint32_t left = matrix->cols - begin;
        const uint32_t n = left < group ? left : group;
        const float scale = ((const float *)(const void *)(block + (size_t)COLIBRI_PAD8(n) * 4))[lane];
        for (uint32_t i = 0; i < n; i++) {
            /* the halfword of this column in the word of the rows' pair */
            const uint8_t *half = block + (size_t)(i / 2) * 8 + lane / 2 * 4 + i % 2 * 2;
            uint32_t odd = half[1] + ((uint32_t)half[0] >> 7);
            int32_t q = (int8_t)(uint8_t)colibri_select(is_odd, odd, half[0]);
            out[begin + i] = colibri_snap((float)q * scale);
        }
        block += (size_t)COLIBRI_PAD8(n) * 4 + 16;
    }
}

#endif
