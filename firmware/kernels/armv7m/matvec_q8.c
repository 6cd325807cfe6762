/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#if COLIBRI_USE_Q8

/* BOUND: 65536 * 127 * 127 < 2**31. */
void colibri_matvec_q8_armv7m(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                              uint32_t row_begin, uint32_t row_end)
{
    const uint32_t block_bytes = 4 * matrix->row_bytes;
    const float x_scale = x->quant_scales[0];
    weights += (size_t)(row_begin / 4) * block_bytes;
    for (uint32_t row = row_begin; row < row_end; weights += block_bytes) {
        const int32_t *xq = x->quant;
        const uint8_t *w = weights;
        int32_t total[4] = {0, 0, 0, 0};
        for (uint32_t left = COLIBRI_PAD8(matrix->cols); left > 0;) {
            const uint32_t n = colibri_min_u32(left, COLIBRI_SEGMENT_ELEMS);
            int32_t sums[4];
            colibri_q8_sums_armv7m(sums, w, xq, n / 8);
            for (uint32_t i = 0; i < 4; i++) {
                total[i] += sums[i];
            }
            w += (size_t)n * 4;
            xq += COLIBRI_Q8_BEGIN_WORDS + n;
            left -= n;
        }
        const float *scales = colibri_scales_at(w);
        for (uint32_t lane = row % 4; lane < 4 && row < row_end; lane++) {
            out[row++] = colibri_snap((float)total[lane] * (scales[lane] * x_scale));
        }
    }
}

#endif
