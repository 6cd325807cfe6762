/* SPDX-License-Identifier: Apache-2.0 */
#include "groups.h"

#if COLIBRI_USE_Q4

void colibri_matvec_q4_mve(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                           uint32_t row_begin, uint32_t row_end)
{
    const float *scales = (const float *)(const void *)(weights + matrix->scales_offset);
    const uint8_t *multipliers = weights + matrix->scales_offset + (size_t)matrix->rows * sizeof(float);
    colibri_mve_by_groups(out, matrix, weights, x, row_begin, row_end, multipliers, 1, matrix->row_bytes * 2,
                          colibri_q4_blocks_mve, colibri_q4_rows_mve);
    colibri_scale_rows_mve(out + row_begin, scales + row_begin, row_end - row_begin, colibri_bits(x->quant_scales[0]));
}

#endif
