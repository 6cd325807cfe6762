/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#if COLIBRI_USE_Q8_GROUP

void colibri_matvec_q8_group_armv7m(float *out, const colibri_matrix_t *matrix, const uint8_t *weights,
                                    const colibri_vector_t *x, uint32_t row_begin, uint32_t row_end)
{
    const uint32_t n_cols = COLIBRI_PAD8(matrix->cols);
    weights += (size_t)(row_begin / 4) * 4 * matrix->row_bytes;
    for (uint32_t row = row_begin; row < row_end;) {
        const int32_t *xq = x->quant;
        const float *x_scale = x->quant_scales;
        float total[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (uint32_t begin = 0; begin < n_cols; begin += matrix->group) {
            const uint32_t n = colibri_min_u32(n_cols - begin, matrix->group);
            int32_t sums[4];
            colibri_q8_sums_armv7m(sums, weights, xq, n / 8);
            weights += (size_t)n * 4;
            const float *scales = colibri_scales_at(weights);
            for (uint32_t i = 0; i < 4; i++) {
                total[i] = colibri_fma((float)sums[i], scales[i] * *x_scale, total[i]);
            }
            weights += 16;
            xq += COLIBRI_Q8_BEGIN_WORDS + n;
            x_scale++;
        }
        for (uint32_t lane = row % 4; lane < 4 && row < row_end; lane++) {
            out[row++] = colibri_snap(total[lane]);
        }
    }
}

#endif
