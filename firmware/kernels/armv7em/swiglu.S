/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#include "exp.h"

#if defined(__ARM_FEATURE_DSP)

#define ONE s10
#define G0 s28
#define G1 s29
#define U0 s30
#define U1 s31

/* void colibri_swiglu_armv7em(float *g, const float *u, uint32_t n)
 *
 * r3   bits of 28      r8, r9   bits of g      r10   0, or where the last of an odd number belongs, which is computed on the stack
 * r11  fpscr
 */
FUNCTION colibri_swiglu_armv7em
    push {r4-r11, lr}
    vpush {s16-s31}
    sub sp, #20
    EXP_CONSTANTS r12
    FLUSH_ON r11, r3
    mov r3, #0x3f800000
    vmov ONE, r3
    vmov r3, LIMIT
    mov r10, #0
    subs r2, #2
    blo 2f
1:  ldrd r8, r9, [r0]
    vldm r1!, {U0, U1}
    bic r4, r8, #0x80000000
    bic r5, r9, #0x80000000
    cmp r4, r3
    it hi
    movhi r4, r3
    cmp r5, r3
    it hi
    movhi r5, r3
    vmov s0, s1, r4, r5
    vmov G0, G1, r8, r9
    EXP r12
    vadd.f32 s2, s0, ONE
    vadd.f32 s3, s1, ONE
    cmp r8, #0
    it ge
    vmovge.f32 s0, ONE
    cmp r9, #0
    it ge
    vmovge.f32 s1, ONE
    vdiv.f32 s0, s0, s2
    vdiv.f32 s1, s1, s3
    vmul.f32 s0, s0, G0
    vmul.f32 s1, s1, G1
    vmul.f32 s0, s0, DOWN
    vmul.f32 s1, s1, DOWN
    vmul.f32 s0, s0, UP
    vmul.f32 s1, s1, UP
    vmul.f32 s0, s0, U0
    vmul.f32 s1, s1, U1
    vmul.f32 s0, s0, DOWN
    vmul.f32 s1, s1, DOWN
    vmul.f32 s0, s0, UP
    vmul.f32 s1, s1, UP
    vadd.f32 s0, s0, ZERO
    vadd.f32 s1, s1, ZERO
    vstm r0!, {s0, s1}
    subs r2, #2
    bhs 1b
2:  adds r2, #2
    beq 3f
    mov r10, r0
    ldr r4, [r0]
    mov r5, #0
    strd r4, r5, [sp]
    ldr r4, [r1]
    strd r4, r5, [sp, #8]
    mov r0, sp
    add r1, sp, #8
    mov r2, #0
    b 1b
3:  cmp r10, #0
    beq 4f
    ldr r4, [sp]
    str r4, [r10]
4:  vmsr fpscr, r11
    add sp, #20
    vpop {s16-s31}
    pop {r4-r11, pc}
END colibri_swiglu_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
