/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

void colibri_axpy_portable(float *y, float a, const float *x, uint32_t n)
{
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4) { /* loads before stores: the compiler cannot know that they do not alias */
        float y0 = colibri_fma(a, x[i], y[i]);
        float y1 = colibri_fma(a, x[i + 1], y[i + 1]);
        float y2 = colibri_fma(a, x[i + 2], y[i + 2]);
        float y3 = colibri_fma(a, x[i + 3], y[i + 3]);
        y[i] = y0;
        y[i + 1] = y1;
        y[i + 2] = y2;
        y[i + 3] = y3;
    }
    for (; i < n; i++) {
        y[i] = colibri_fma(a, x[i], y[i]);
    }
}
