/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

void colibri_rotate_portable(float *x, const float *cos, const float *sin, uint32_t n_pairs, uint32_t step, uint32_t distance)
{
    for (uint32_t i = 0; i < n_pairs; i++, x += step) {
        float x0 = x[0];
        float x1 = x[distance];
        x[0] = colibri_snap(colibri_fma(-x1, sin[i], colibri_snap(x0 * cos[i])));
        x[distance] = colibri_snap(colibri_fma(x0, sin[i], colibri_snap(x1 * cos[i])));
    }
}
