/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

void colibri_rmsnorm(float *out, const float *x, const float *weights)
{
    float d = colibri_snap(colibri_kernels.dot(x, x, COLIBRI_HIDDEN_SIZE));
    float v = d * COLIBRI_NORM_RN + COLIBRI_NORM_EPS;
    float inv = 1.0f / colibri_sqrt(v);
    for (uint32_t i = 0; i < COLIBRI_HIDDEN_SIZE; i++) {
        out[i] = colibri_snap(colibri_snap(x[i] * inv) * weights[i]);
    }
}

void colibri_add_residual(float *x, const float *y)
{
    for (uint32_t i = 0; i < COLIBRI_HIDDEN_SIZE; i++) {
        x[i] = colibri_snap(x[i] + y[i]);
    }
}
