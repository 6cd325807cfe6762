/* SPDX-License-Identifier: Apache-2.0 */
#include "dot8.h"

#if COLIBRI_USE_F32

#define W(i) w[i]
#define X(i) values[i]

static const float *row_of(const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    return (const float *)(const void *)(weights + (size_t)row * matrix->row_bytes);
}

void colibri_matvec_f32_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                                 uint32_t row_begin, uint32_t row_end)
{
    const float *values = x->values;
    uint32_t n = matrix->row_bytes / 4;
    for (uint32_t row = row_begin; row < row_end; row++) {
        const float *w = row_of(matrix, weights, row);
        COLIBRI_DOT8_BEGIN;
        for (uint32_t i = 0; i < n; i += 8) {
            COLIBRI_DOT8_STEP(W, X, i);
        }
        out[row] = colibri_snap(COLIBRI_DOT8_END);
    }
}

void colibri_widen_f32_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const float *w = row_of(matrix, weights, row);
    for (uint32_t i = 0; i < matrix->cols; i++) {
        out[i] = w[i];
    }
}

#endif
