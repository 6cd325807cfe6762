/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_USE_F16

/* binary16 through the integer of its significand: exact, and no operand is subnormal (flushing one would lose it). The
 * smallest value is 2**-24, so the only work left for the contract's snap is -0.0, and the integer 0 has no sign.
 */
static float widen(uint16_t half)
{
    uint32_t exponent = (uint32_t)half >> 10 & 31u;
    uint32_t normal = (exponent + 31u) >> 5; /* 1 where the exponent is not 0 */
    uint32_t significand = ((uint32_t)half & 0x3ffu) | normal << 10;
    uint32_t sign = colibri_mask_of_bit((uint32_t)half >> 15);
    uint32_t scale = (exponent + (normal ^ 1u) - 25u + 127u) << 23;
    return (float)(int32_t)((significand ^ sign) - sign) * colibri_from_bits(scale);
}

#define COLIBRI_MATVEC_16BIT colibri_matvec_f16_portable
#define COLIBRI_WIDEN_16BIT colibri_widen_f16_portable
#include "matvec_16bit.h"

#endif
