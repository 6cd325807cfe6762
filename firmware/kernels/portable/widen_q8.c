/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP

void colibri_widen_q8_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const int8_t *w = (const int8_t *)(weights + (size_t)row * matrix->row_bytes);
    const float *scales = (const float *)(const void *)(weights + matrix->scales_offset);
    uint32_t group = matrix->group ? matrix->group : matrix->cols;
    uint32_t n_groups = 0;
    for (uint32_t i = 0; i < matrix->cols; i += group) {
        n_groups++;
    }
    scales += (size_t)row * n_groups;
    for (uint32_t begin = 0; begin < matrix->cols; begin += group) {
        float scale = *scales++;
        for (uint32_t i = begin; i < begin + group && i < matrix->cols; i++) {
            out[i] = colibri_snap((float)w[i] * scale);
        }
    }
}

#endif
