/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP

void colibri_widen_q8_armv7m(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const uint32_t group = matrix->group != 0 ? matrix->group : matrix->cols;
    const uint32_t lane = row % 4;
    const uint8_t *block = weights + (size_t)(row / 4) * 4 * matrix->row_bytes;
    for (uint32_t begin = 0; begin < matrix->cols; begin += group) {
        const uint32_t n = colibri_min_u32(matrix->cols - begin, group);
        const uint8_t *end = block + (size_t)COLIBRI_PAD8(n) * 4;
        const float scale = colibri_scales_at(end)[lane];
        for (uint32_t i = 0; i < n; i++) {
            out[begin + i] = colibri_snap((float)((int32_t)block[4 * i + lane] - 128) * scale);
        }
        block = end + 16;
    }
}

#endif
