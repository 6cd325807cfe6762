/* SPDX-License-Identifier: Apache-2.0 */
/* Four rows' results from their sums. What flushing (asm.h) takes besides is a factor of a result below 2**-40. */
#define X_SCALE s12

/* r6!: snap(s0-s3 * (s4-s7 * X_SCALE)). The stack begins with four zeros: a sum with +0.0 makes +0.0 of -0.0. */
.macro STORE_FOUR
    vldm sp, {s8-s11}
    FOUR vmul.f32, s4, s5, s6, s7, X_SCALE
    FOUR_BY vmul.f32, s0, s1, s2, s3, s4, s5, s6, s7
    FOUR vmul.f32, s0, s1, s2, s3, DOWN
    vfma.f32 s8, s0, UP
    vfma.f32 s9, s1, UP
    vfma.f32 s10, s2, UP
    vfma.f32 s11, s3, UP
    vstm r6!, {s8-s11}
.endm
