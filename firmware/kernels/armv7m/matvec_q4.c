/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#if COLIBRI_USE_Q4

/* BOUND: 8192 * 7 * 127 * 255 < 2**31. */
void colibri_matvec_q4_armv7m(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                              uint32_t row_begin, uint32_t row_end)
{
    const uint32_t block_bytes = 8 * matrix->row_bytes;
    const float x_scale = x->quant_scales[0];
    weights += (size_t)(row_begin / 8) * block_bytes;
    for (uint32_t row = row_begin; row < row_end; weights += block_bytes) {
        int32_t sums[8];
        colibri_q4_sums_armv7m(sums, weights, x->quant, COLIBRI_PAD8(matrix->cols) / 8);
        const float *scales = colibri_scales_at(weights + block_bytes) - 8;
        for (uint32_t lane = row % 8; lane < 8 && row < row_end; lane++) {
            out[row++] = colibri_snap((float)sums[lane] * (scales[lane] * x_scale));
        }
    }
}

#endif
