/* SPDX-License-Identifier: Apache-2.0 */
#include "dot8.h"

#if COLIBRI_KV_Q8

#define A(i) a[i]
#define X(i) colibri_snap((float)x[i] * scale)

float colibri_dot_q8_portable(const float *a, const int8_t *x, float scale, uint32_t n)
{
    COLIBRI_DOT8_BEGIN;
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        COLIBRI_DOT8_STEP(A, X, i);
    }
    if (i < n) {
        COLIBRI_DOT8_TAIL(A, X, i, n);
    }
    return COLIBRI_DOT8_END;
}

void colibri_axpy_q8_portable(float *y, float a, const int8_t *x, float scale, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        y[i] = colibri_fma(a, X(i), y[i]);
    }
}

#endif
