/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

uint32_t colibri_absmax_portable(const float *x, uint32_t n)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t magnitude = colibri_magnitude(x[i]);
        largest += (magnitude - largest) & colibri_mask_below(largest, magnitude);
    }
    return largest;
}
