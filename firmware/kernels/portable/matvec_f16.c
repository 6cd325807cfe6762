/* SPDX-License-Identifier: Apache-2.0 */
#include "half.h"

#if COLIBRI_USE_F16

static float widen(uint16_t half)
{
    return colibri_widen_half(half);
}

#define COLIBRI_MATVEC_16BIT colibri_matvec_f16_portable
#define COLIBRI_WIDEN_16BIT colibri_widen_f16_portable
#include "matvec_16bit.h"

#endif
