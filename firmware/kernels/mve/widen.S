/* SPDX-License-Identifier: Apache-2.0 */
#include "asm.h"

#if defined(__ARM_FEATURE_MVE)

/* void colibri_widen_step_mve(float *out, const uint8_t *w, uint32_t n, uint32_t scale): snap(f32(int8) * scale), n of them. */
FUNCTION colibri_widen_step_mve
    push {r4, lr}
    SNAP_BEGIN q1, r12, r4
    wlstp.32 lr, r2, 2f
1:  vldrb.s32 q0, [r1], #4
    vcvt.f32.s32 q0, q0
    vmul.f32 q0, q0, r3
    SNAP q0, q1, r12, r4
    vstrw.32 q0, [r0], #16
    letp lr, 1b
2:  pop {r4, pc}
END colibri_widen_step_mve

/* void colibri_widen_nibbles_mve(float *out, const uint8_t *w, uint32_t n, uint32_t scale, uint32_t shift)
 *
 * The same of int4; shift: 28 for the bytes' low nibbles, 24 for the high ones.
 */
FUNCTION colibri_widen_nibbles_mve
    push {r4-r6, lr}
    ldr r5, [sp, #16]
    SNAP_BEGIN q1, r12, r4
    wlstp.32 lr, r2, 2f
1:  vldrb.u32 q0, [r1], #4
    vshl.s32 q0, r5
    vshr.s32 q0, q0, #28
    vcvt.f32.s32 q0, q0
    vmul.f32 q0, q0, r3
    SNAP q0, q1, r12, r4
    vstrw.32 q0, [r0], #16
    letp lr, 1b
2:  pop {r4-r6, pc}
END colibri_widen_nibbles_mve

#endif

    .section .note.GNU-stack, "", %progbits
