/* SPDX-License-Identifier: Apache-2.0 */
#include "../functions.h"
#include "../kernels.h"

/* The contract snaps z - m, which changes nothing: exp of anything between -2**-40 and 0 rounds to 1, as exp(0) is. */
void colibri_softmax_portable(float *z, uint32_t n)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t key = colibri_order_key(z[i]);
        largest = colibri_select(colibri_mask_below_u32(largest, key), key, largest);
    }
    float m = colibri_from_order_key(largest);
    float sum = 0.0f;
    for (uint32_t i = 0; i < n; i++) {
        z[i] = colibri_exp(z[i] - m);
        sum += z[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        z[i] = colibri_snap(z[i] / sum);
    }
}
