/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the two 16-bit float formats, which differ only in how an element is widened. The including file defines
 * `static float widen(uint16_t half)` and the names COLIBRI_MATVEC_16BIT and COLIBRI_WIDEN_16BIT. Included once by each.
 */
#include "dot8.h"

#define W(i) widen(w[i])
#define X(i) values[i]

static const uint16_t *row_of(const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    return (const uint16_t *)(const void *)(weights + (size_t)row * matrix->row_bytes);
}

void COLIBRI_MATVEC_16BIT(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                          uint32_t row_begin, uint32_t row_end)
{
    const float *values = x->values;
    uint32_t n = matrix->row_bytes / 2;
    for (uint32_t row = row_begin; row < row_end; row++) {
        const uint16_t *w = row_of(matrix, weights, row);
        COLIBRI_DOT8_BEGIN;
        for (uint32_t i = 0; i < n; i += 8) {
            COLIBRI_DOT8_STEP(W, X, i);
        }
        out[row] = colibri_snap(COLIBRI_DOT8_END);
    }
}

void COLIBRI_WIDEN_16BIT(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const uint16_t *w = row_of(matrix, weights, row);
    for (uint32_t i = 0; i < matrix->cols; i++) {
        out[i] = widen(w[i]);
    }
}
