/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

void colibri_scale_portable(float *x, float a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        x[i] = colibri_snap(x[i] * a);
    }
}
