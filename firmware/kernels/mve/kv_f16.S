/* SPDX-License-Identifier: Apache-2.0 */
/* The conversion from binary16 is exact, subnormals included. */
#if defined(__ARM_FEATURE_MVE)

#define SCORES colibri_scores_f16_mve
#define MIX colibri_mix_f16_mve
#define KV_BYTES 2

.macro KV_LOAD q, from, at
    vldrh.u32 q\q, [\from, #8 * \at]
    WIDEN_HALF \q
.endm

.macro KV_NEXT q, from, t
    vldrh\t\().u32 q\q, [\from], #8
    WIDEN_HALF \q
.endm

.macro KV_SCALE
.endm

#include "kv_rows.h"

/* void colibri_narrow_f16_mve(uint16_t *out, const float *x, uint32_t n) */
FUNCTION colibri_narrow_f16_mve
    push {r4, lr}
    wlstp.32 lr, r2, 2f
1:  vldrw.u32 q0, [r1], #16
    vcvtb.f16.f32 q0, q0
    vstrh.32 q0, [r0], #8
    letp lr, 1b
2:  pop {r4, pc}
END colibri_narrow_f16_mve

#endif
