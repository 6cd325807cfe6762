/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_USE_BF16

static float widen(uint16_t half)
{
    return colibri_from_bits((uint32_t)half << 16);
}

#define COLIBRI_MATVEC_16BIT colibri_matvec_bf16_portable
#define COLIBRI_WIDEN_16BIT colibri_widen_bf16_portable
#include "matvec_16bit.h"

#endif
