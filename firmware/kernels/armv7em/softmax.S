/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#include "exp.h"

#if defined(__ARM_FEATURE_DSP)

.macro LARGER x
    vcmp.f32 s10, \x
    vmrs APSR_nzcv, fpscr
    it mi
    vmovmi.f32 s10, \x
.endm

.macro CLAMP x
    vcmp.f32 \x, LIMIT
    vmrs APSR_nzcv, fpscr
    it gt
    vmovgt.f32 \x, LIMIT
.endm

/* void colibri_softmax_armv7em(float *z, uint32_t n)
 *
 * s10   the largest      s11   the sum      r8   fpscr
 * The last of an odd number is computed on the stack, beside a number whose exp is 0.
 */
FUNCTION colibri_softmax_armv7em
    push {r4-r9, lr}
    vpush {s16-s27}
    sub sp, #12
    EXP_CONSTANTS r12

    vldr s10, [r0]
    mov r2, r0
    subs r3, r1, #4
    blo 2f
1:  vldm r2!, {s0-s3}
    LARGER s0
    LARGER s1
    LARGER s2
    LARGER s3
    subs r3, #4
    bhs 1b
2:  adds r3, #4
    beq 4f
3:  vldm r2!, {s0}
    LARGER s0
    subs r3, #1
    bne 3b

4:  FLUSH_ON r8, r3
    vmov.f32 s11, ZERO
    mov r2, r0
    mov r9, #0
    subs r3, r1, #2
    blo 6f
5:  vldm r2, {s0, s1}
    vsub.f32 s0, s10, s0
    vsub.f32 s1, s10, s1
    CLAMP s0
    CLAMP s1
    EXP r12
    vstm r2!, {s0, s1}
    vadd.f32 s11, s11, s0
    vadd.f32 s11, s11, s1
    subs r3, #2
    bhs 5b
6:  adds r3, #2
    beq 7f
    mov r9, r2
    ldr r4, [r2]
    mov r5, #0xfe000000             /* -2**125 */
    strd r4, r5, [sp]
    mov r2, sp
    mov r3, #0
    b 5b
7:  cmp r9, #0
    beq 8f
    ldr r4, [sp]
    str r4, [r9]

8:  subs r1, #4
    blo 10f
9:  vldm r0, {s0-s3}
    FOUR vdiv.f32, s0, s1, s2, s3, s11
    SNAP_FACTOR_FOUR s0, s1, s2, s3
    vstm r0!, {s0-s3}
    subs r1, #4
    bhs 9b
10: adds r1, #4
    beq 12f
11: vldr s0, [r0]
    vdiv.f32 s0, s0, s11
    SNAP_FACTOR s0
    vstm r0!, {s0}
    subs r1, #1
    bne 11b
12: vmsr fpscr, r8
    add sp, #12
    vpop {s16-s27}
    pop {r4-r9, pc}
END colibri_softmax_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
