/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

void colibri_rmsnorm(float *out, const float *x, const float *weights)
{
    float d = colibri_kernels.dot(x, x, COLIBRI_HIDDEN_SIZE);
    float v = d * COLIBRI_NORM_RN + COLIBRI_NORM_EPS;
    colibri_kernels.normalise(out, x, 1.0f / colibri_sqrt(v), weights, COLIBRI_HIDDEN_SIZE);
}
