/* SPDX-License-Identifier: Apache-2.0 */
#include "mve.h"

#if COLIBRI_USE_Q8

/* BOUND: 65536 * 127 * 127 < 2**31. */
void colibri_matvec_q8_mve(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                           uint32_t row_begin, uint32_t row_end)
{
    const float *scales = (const float *)(const void *)(weights + matrix->scales_offset);
    const uint32_t n_steps = matrix->row_bytes / COLIBRI_MVE_STEP_BYTES;
    uint32_t row = row_begin;
    while (row < row_end) {
        colibri_mve_span_t span = colibri_mve_span(matrix->rows, row, row_end);
        const uint8_t *w = weights + (size_t)(row - span.in_block) * matrix->row_bytes + span.in_block * COLIBRI_MVE_STEP_BYTES;
        if (span.n_rows >= COLIBRI_MVE_BLOCK_ROWS) {
            colibri_q8_blocks_mve(out + row, w, x->quant, n_steps, span.n_rows / COLIBRI_MVE_BLOCK_ROWS);
        } else {
            colibri_q8_rows_mve(out + row, w, x->quant, n_steps, span.block_rows * COLIBRI_MVE_STEP_BYTES, span.n_rows);
        }
        row += span.n_rows;
    }
    colibri_scale_rows_mve(out + row_begin, scales + row_begin, row_end - row_begin, colibri_bits(x->quant_scales[0]));
}

#endif
