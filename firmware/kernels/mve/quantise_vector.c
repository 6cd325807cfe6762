/* SPDX-License-Identifier: Apache-2.0 */
#include "mve.h"

#if COLIBRI_QUANT_BYTES > 0

/* int8 in order, in whole steps of the matrix: the pad is zero. */
void colibri_quantise_vector_mve(void *quant, float *scales, const colibri_matrix_t *matrix, const float *x)
{
    int8_t *out = quant;
    uint32_t n = matrix->cols;
    uint32_t group = matrix->dtype == COLIBRI_Q8 && matrix->group != 0 ? matrix->group : n;
    for (uint32_t begin = 0; begin < n; begin += group) {
        uint32_t left = n - begin;
        colibri_quantise_mve(out + begin, scales++, x + begin, left < group ? left : group);
    }
    uint32_t n_padded = matrix->dtype == COLIBRI_Q4 ? matrix->row_bytes * 2 : matrix->row_bytes;
    for (uint32_t i = n; i < n_padded; i++) {
        out[i] = 0;
    }
}

#endif
