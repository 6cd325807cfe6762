/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

void colibri_normalise_portable(float *out, const float *x, float inv, const float *weights, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = colibri_snap(colibri_snap(x[i] * inv) * weights[i]);
    }
}
