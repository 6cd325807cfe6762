/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

void colibri_add_portable(float *x, const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        x[i] = colibri_snap(x[i] + y[i]);
    }
}
