/* SPDX-License-Identifier: Apache-2.0 */
#include "../functions.h"
#include "../kernels.h"

void colibri_swiglu_portable(float *g, const float *u, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        g[i] = colibri_snap(colibri_silu(g[i]) * u[i]);
    }
}
