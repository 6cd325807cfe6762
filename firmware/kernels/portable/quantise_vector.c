/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_QUANT_BYTES > 0

/* int8 in order. The pad is zero for the kernels. */
void colibri_quantise_vector_portable(void *quant, float *scales, const colibri_matrix_t *matrix, const float *x)
{
    int8_t *out = quant;
    uint32_t n = matrix->cols;
    uint32_t group = matrix->dtype == COLIBRI_Q8 && matrix->group != 0 ? matrix->group : n;
    for (uint32_t begin = 0; begin < n; begin += group) {
        uint32_t left = n - begin;
        colibri_quantise_portable(out + begin, scales++, x + begin, left < group ? left : group);
    }
    for (uint32_t i = n; i < COLIBRI_PAD8(n); i++) {
        out[i] = 0;
    }
}

#endif
