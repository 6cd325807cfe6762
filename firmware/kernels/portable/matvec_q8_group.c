/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_USE_Q8_GROUP

/* The last group of a row is short where the group does not divide it; padded columns are zero on both sides. */
void colibri_matvec_q8_group_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights,
                                      const colibri_vector_t *x, uint32_t row_begin, uint32_t row_end)
{
    const uint32_t n = matrix->row_bytes;
    const uint32_t group = matrix->group;
    const uint32_t group_log2 = 5 + (group >> 6); /* 32, 64, 128 -> 5, 6, 7 */
    const uint32_t n_groups = (matrix->cols + group - 1) >> group_log2;
    const float *scale = (const float *)(const void *)(weights + matrix->scales_offset) + (size_t)row_begin * n_groups;
    const int8_t *w = (const int8_t *)(weights + (size_t)row_begin * n);
    for (uint32_t row = row_begin; row < row_end; row++) {
        const int8_t *xq = x->quant;
        const int8_t *x_end = xq + n;
        float sum = 0.0f;
        for (uint32_t g = 0; g < n_groups; g++) {
            const int8_t *group_end = (uint32_t)(x_end - xq) < group ? x_end : xq + group;
            int32_t acc = 0;
            for (; xq < group_end; xq += 8) {
                acc += w[0] * xq[0];
                acc += w[1] * xq[1];
                acc += w[2] * xq[2];
                acc += w[3] * xq[3];
                acc += w[4] * xq[4];
                acc += w[5] * xq[5];
                acc += w[6] * xq[6];
                acc += w[7] * xq[7];
                w += 8;
            }
            sum = colibri_fma((float)acc, scale[g] * x->quant_scales[g], sum);
        }
        scale += n_groups;
        out[row] = colibri_snap(sum);
    }
}

#endif
