/* SPDX-License-Identifier: Apache-2.0 */
/* No snap: a scale is 0 or at least 2**-40, and so is the product with an integer. A zero's sign adds nothing. */
#if defined(__ARM_FEATURE_MVE)

#define SCORES colibri_scores_q8_mve
#define MIX colibri_mix_q8_mve
#define KV_BYTES 1

.macro KV_LOAD q, from, at
    vldrb.s32 q\q, [\from, #4 * \at]
    vcvt.f32.s32 q\q, q\q
    vmul.f32 q\q, q\q, r12
.endm

.macro KV_NEXT q, from, t
    vldrb\t\().s32 q\q, [\from], #4
    vcvt.f32.s32 q\q, q\q
    vmul.f32 q\q, q\q, r12
.endm

.macro KV_SCALE
    ldr r12, [r10]
    add r10, r11
.endm

#include "kv_rows.h"

#endif
