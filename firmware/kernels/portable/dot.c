/* SPDX-License-Identifier: Apache-2.0 */
#include "dot8.h"

#define A(i) a[i]
#define X(i) x[i]

float colibri_dot_portable(const float *a, const float *x, uint32_t n)
{
    COLIBRI_DOT8_BEGIN;
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        COLIBRI_DOT8_STEP(A, X, i);
    }
    if (i < n) {
        COLIBRI_DOT8_TAIL(A, X, i, n);
    }
    return colibri_snap(COLIBRI_DOT8_END);
}
