/* SPDX-License-Identifier: Apache-2.0 */
#include "mve.h"

#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP

void colibri_widen_q8_mve(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const uint32_t n_groups = colibri_mve_n_groups(matrix);
    colibri_mve_span_t span = colibri_mve_span(matrix->rows, row, row + 1);
    size_t block = row - span.in_block;
    const uint8_t *w = weights + block * matrix->row_bytes + span.in_block * COLIBRI_MVE_STEP_BYTES;
    const float *scale = (const float *)(const void *)(weights + matrix->scales_offset) + block * n_groups + span.in_block;
    for (uint32_t i = 0; i < matrix->cols; i += COLIBRI_MVE_STEP_BYTES) {
        uint32_t left = matrix->cols - i;
        uint32_t n = left < COLIBRI_MVE_STEP_BYTES ? left : COLIBRI_MVE_STEP_BYTES;
        colibri_widen_step_mve(out + i, w, n, colibri_bits(scale[(size_t)colibri_mve_group_of(matrix, i) * span.block_rows]));
        w += span.block_rows * COLIBRI_MVE_STEP_BYTES;
    }
}

#endif
