/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

colibri_status colibri_check_range(const float *x, uint32_t n)
{
    return colibri_kernels.absmax(x, n) < COLIBRI_RANGE_BITS ? COLIBRI_OK : COLIBRI_ERR_RANGE;
}
