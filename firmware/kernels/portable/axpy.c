/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

void colibri_axpy_portable(float *y, float a, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        y[i] = colibri_fma(a, x[i], y[i]);
    }
}
