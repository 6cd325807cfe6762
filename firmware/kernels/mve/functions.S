/* SPDX-License-Identifier: Apache-2.0 */
/* softmax and swiglu of kernels.h: exp of docs/NUMERICS.md, section 6, on four numbers, in the registers that
 * colibri_exp_constants_mve (functions.c) fills. There is no vector division: scalar ones work on the vectors' lanes.
 *
 * exp is computed of -a, a >= 0, with k, r and the odd coefficients negated: the same bits, and one constant less.
 */
#include "asm.h"

#if defined(__ARM_FEATURE_MVE)

/* r2 to r12, q5 and q6 from the table. */
.macro EXP_CONSTANTS
    ldr lr, =colibri_exp_constants_mve
    ldrd r2, r3, [lr, #44]
    vdup.32 q5, r2
    vdup.32 q6, r3
    ldm lr, {r2-r12}
.endm

/* q3 = snap(exp(-min(q0, 28))); q0, q1 and q2 are lost. The constant that rounds has 86 added: what is below 2**-40 has become a
 * subnormal, which the product with 2**86 flushes. */
.macro EXP
    vminnm.f32 q0, q0, q5
    vmul.f32 q1, q0, r2
    vadd.f32 q1, q1, r3             /* k + 86 in the low bits */
    vsub.f32 q2, q1, r3
    vfma.f32 q0, q2, r4
    vfma.f32 q0, q2, r5             /* r */
    vmov q3, q6
    vfmas.f32 q3, q0, r6
    vfmas.f32 q3, q0, r7
    vfmas.f32 q3, q0, r8
    vfmas.f32 q3, q0, r9
    vfmas.f32 q3, q0, r10
    vfmas.f32 q3, q0, r11
    vshl.i32 q1, q1, #23
    vsub.i32 q3, q3, q1
    vmul.f32 q3, q3, r12
.endm

/* void colibri_swiglu_mve(float *g, const float *u, uint32_t n) */
.macro SILU                         /* of q4, to q3 */
    vabs.f32 q0, q4
    EXP
    vadd.f32 q1, q3, r11
    vpt.f32 ge, q4, zr
    vdupt.32 q3, r11                /* the numerator: 1 or e */
    vdiv.f32 s12, s12, s4
    vdiv.f32 s13, s13, s5
    vdiv.f32 s14, s14, s6
    vdiv.f32 s15, s15, s7
    vmul.f32 q3, q3, q4
    vmul.f32 q3, q3, q7
    vmul.f32 q3, q3, r12            /* snapped but for the sign of a zero */
.endm

.macro GATE                         /* q0 = snap(q3 * q1) */
    vmul.f32 q3, q3, q1
    vmul.f32 q3, q3, q7
    vmov.i32 q0, #0
    vfma.f32 q0, q3, r12
.endm

FUNCTION colibri_swiglu_mve
    push {r2, r4-r11, lr}
    vpush {d8-d15}
    mov r3, #DOWN_BITS
    vdup.32 q7, r3
    EXP_CONSTANTS
    ldr lr, [sp, #64]
    lsrs lr, lr, #2
    beq 2f
1:  vldrw.u32 q4, [r0]
    SILU
    vldrw.u32 q1, [r1], #16
    GATE
    vstrw.32 q0, [r0], #16
    le lr, 1b
2:  ldr lr, [sp, #64]
    ands lr, lr, #3
    beq 3f
    vctp.32 lr
    vpst
    vldrwt.u32 q4, [r0]
    SILU
    vctp.32 lr
    vpst
    vldrwt.u32 q1, [r1]
    GATE
    vctp.32 lr
    vpst
    vstrwt.32 q0, [r0]
3:  vpop {d8-d15}
    pop {r2, r4-r11, pc}
END colibri_swiglu_mve

/* void colibri_softmax_mve(float *z, uint32_t n) */
.macro DIVIDE                       /* q0 by s16, both positive; r2 is 2**-86 */
    vdiv.f32 s0, s0, s16
    vdiv.f32 s1, s1, s16
    vdiv.f32 s2, s2, s16
    vdiv.f32 s3, s3, s16
    vmul.f32 q0, q0, r2
    vmul.f32 q0, q0, r12
.endm

.macro SUM                          /* of q3, in order */
    vadd.f32 s16, s16, s12
    vadd.f32 s16, s16, s13
    vadd.f32 s16, s16, s14
    vadd.f32 s16, s16, s15
.endm

FUNCTION colibri_softmax_mve
    push {r1, r4-r11, lr}
    vpush {d8-d15}
    mov r2, r0
    ldr r3, [r0]
    wlstp.32 lr, r1, 2f
1:  vldrw.u32 q0, [r2], #16
    vmaxnmv.f32 r3, q0
    letp lr, 1b
2:  vdup.32 q7, r3
    vmov.i32 q4, #0
    EXP_CONSTANTS
    mov r1, r0
    ldr lr, [sp, #64]
    lsrs lr, lr, #2
    beq 4f
3:  vldrw.u32 q0, [r1]
    vsub.f32 q0, q7, q0
    EXP
    SUM
    vstrw.32 q3, [r1], #16
    le lr, 3b
4:  ldr lr, [sp, #64]
    ands lr, lr, #3
    beq 5f
    vctp.32 lr
    vpst
    vldrwt.u32 q0, [r1]
    vsub.f32 q0, q7, q0
    EXP
    vctp.32 lr
    vpst
    vstrwt.32 q3, [r1]
    vpst
    vldrwt.u32 q3, [r1]             /* zero past the end */
    SUM
5:  mov r2, #DOWN_BITS
    ldr lr, [sp, #64]
    lsrs lr, lr, #2
    beq 7f
6:  vldrw.u32 q0, [r0]
    DIVIDE
    vstrw.32 q0, [r0], #16
    le lr, 6b
7:  ldr lr, [sp, #64]
    ands lr, lr, #3
    beq 8f
    vctp.32 lr
    vpst
    vldrwt.u32 q0, [r0]
    DIVIDE
    vctp.32 lr
    vpst
    vstrwt.32 q0, [r0]
8:  vpop {d8-d15}
    pop {r1, r4-r11, pc}
END colibri_softmax_mve

#endif

    .section .note.GNU-stack, "", %progbits
