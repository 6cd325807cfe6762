/* SPDX-License-Identifier: Apache-2.0 */
/* The float formats: rows in order, padded to whole steps of 8 columns, as in layout 1. */
#include "mve.h"

/* x: n_steps * 8 elements; rows one after the other, n_rows of them, at least one. */
typedef void float_rows_fn(float *out, const uint8_t *w, const float *x, uint32_t n_steps, uint32_t n_rows, uint32_t row_bytes);

#if COLIBRI_USE_F32 || COLIBRI_USE_BF16 || COLIBRI_USE_F16
static void multiply(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                            uint32_t row_begin, uint32_t row_end, uint32_t step_bytes_log2, float_rows_fn *rows)
{
    if (row_begin < row_end) {
        rows(out + row_begin, weights + (size_t)row_begin * matrix->row_bytes, x->values, matrix->row_bytes >> step_bytes_log2,
             row_end - row_begin, matrix->row_bytes);
    }
}
#endif

#if COLIBRI_USE_F32
void colibri_matvec_f32_mve(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                            uint32_t row_begin, uint32_t row_end)
{
    multiply(out, matrix, weights, x, row_begin, row_end, 5, colibri_f32_rows_mve);
}
#endif

#if COLIBRI_USE_BF16
void colibri_matvec_bf16_mve(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                             uint32_t row_begin, uint32_t row_end)
{
    multiply(out, matrix, weights, x, row_begin, row_end, 4, colibri_bf16_rows_mve);
}
#endif

#if COLIBRI_USE_F16
void colibri_matvec_f16_mve(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                            uint32_t row_begin, uint32_t row_end)
{
    multiply(out, matrix, weights, x, row_begin, row_end, 4, colibri_f16_rows_mve);
}
#endif
