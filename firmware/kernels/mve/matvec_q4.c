/* SPDX-License-Identifier: Apache-2.0 */
#include "groups.h"

#if COLIBRI_USE_Q4

void colibri_matvec_q4_mve(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                           uint32_t row_begin, uint32_t row_end)
{
    const float *scales = (const float *)(const void *)(weights + matrix->scales_offset);
    const uint8_t *multipliers = (const uint8_t *)(scales + matrix->rows);
    colibri_mve_by_groups(out, matrix, weights, x, row_begin, row_end, multipliers, 1, matrix->row_bytes * 2,
                          colibri_q4_blocks_mve, colibri_q4_rows_mve);
    colibri_scale_rows_mve(out + row_begin, scales + row_begin, row_end - row_begin, colibri_bits(x->quant_scales[0]));
}

void colibri_widen_q4_mve(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const float *scales = (const float *)(const void *)(weights + matrix->scales_offset);
    const uint8_t *multipliers = (const uint8_t *)(scales + matrix->rows);
    const uint32_t n_groups = colibri_mve_n_groups(matrix);
    colibri_mve_span_t span = colibri_mve_span(matrix->rows, row, row + 1);
    size_t block = row - span.in_block;
    const uint8_t *w = weights + block * matrix->row_bytes + span.in_block * COLIBRI_MVE_STEP_BYTES;
    const uint8_t *multiplier = multipliers + block * n_groups + span.in_block;
    for (uint32_t i = 0; i < matrix->cols; i += COLIBRI_MVE_STEP_BYTES) { /* low nibbles of a step, then high ones */
        uint32_t left = matrix->cols - i;
        uint32_t n = left < COLIBRI_MVE_STEP_BYTES ? left : COLIBRI_MVE_STEP_BYTES;
        uint32_t high = i & COLIBRI_MVE_STEP_BYTES;
        float scale = (float)multiplier[(size_t)colibri_mve_group_of(matrix, i) * span.block_rows] * scales[row];
        colibri_widen_nibbles_mve(out + i, w, n, colibri_bits(scale), high ? 24 : 28);
        w += high ? span.block_rows * COLIBRI_MVE_STEP_BYTES : 0;
    }
}

#endif
