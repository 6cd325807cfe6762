/* SPDX-License-Identifier: Apache-2.0 */
#include "asm.h"

#if defined(__ARM_FEATURE_MVE)

/* void colibri_quantise_mve(int8_t *out, float *scale, const float *x, uint32_t n): as the portable one; the conversion rounds to
 * nearest even.
 */
FUNCTION colibri_quantise_mve
    push {r4-r6, lr}
    movs r5, #0
    mov r4, r2
    wlstp.32 lr, r3, 2f
1:  vldrw.u32 q0, [r4], #16
    vbic.i32 q0, #0x80000000
    vmaxv.u32 r5, q0
    letp lr, 1b
2:  cmp r5, #AMAX_ZERO_BITS
    it lo
    movlo r5, #ONE_BITS
    movw r4, #0
    movt r4, #0x42fe                /* 127.0 */
    vmov s0, s1, r4, r5
    vdiv.f32 s2, s0, s1
    vdiv.f32 s3, s1, s0
    vmov r6, r5, s2, s3
    it lo
    movlo r5, #0
    str r5, [r1]
    wlstp.32 lr, r3, 4f
3:  vldrw.u32 q0, [r2], #16
    vmul.f32 q0, q0, r6
    vcvtn.s32.f32 q0, q0
    vstrb.32 q0, [r0], #4
    letp lr, 3b
4:  pop {r4-r6, pc}
END colibri_quantise_mve

#endif

    .section .note.GNU-stack, "", %progbits
