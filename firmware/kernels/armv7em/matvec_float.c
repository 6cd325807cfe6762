/* SPDX-License-Identifier: Apache-2.0 */
/* A product of a float matrix is the scores of its rows. */
#include "table.h"

#if COLIBRI_USE_F32 || COLIBRI_USE_BF16 || COLIBRI_USE_F16

typedef void scores_fn(float *z, const float *q, const colibri_kv_rows_t *keys);

static void product(scores_fn *scores, float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const float *x,
                    uint32_t row_begin, uint32_t row_end)
{
    uint32_t n_cols = COLIBRI_PAD8(matrix->cols);
    colibri_kv_rows_t rows = {
        .values = weights + (size_t)row_begin * matrix->row_bytes,
        .n_rows = row_end - row_begin,
        .n_cols = n_cols,
        .stride = n_cols,
    };
    if (rows.n_rows != 0) {
        scores(out + row_begin, x, &rows);
    }
}

#endif

#define MATVEC(format)                                                                                                        \
    void colibri_matvec_##format##_armv7em(float *out, const colibri_matrix_t *matrix, const uint8_t *weights,               \
                                           const colibri_vector_t *x, uint32_t row_begin, uint32_t row_end)                  \
    {                                                                                                                         \
        product(colibri_scores_##format##_armv7em, out, matrix, weights, x->values, row_begin, row_end);                      \
    }

#if COLIBRI_USE_F32
MATVEC(f32)
#endif
#if COLIBRI_USE_BF16
MATVEC(bf16)
#endif
#if COLIBRI_USE_F16
MATVEC(f16)
#endif
