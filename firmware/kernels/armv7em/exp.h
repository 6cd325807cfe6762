/* SPDX-License-Identifier: Apache-2.0 */
/* exp of docs/NUMERICS.md, section 6, of two numbers at a time.
 *
 * It is computed of -a, a >= 0: with k and r negated every bit is the same. The coefficients that Horner's rule adds come from one
 * load for both numbers: each is overwritten by its step.
 */
#ifndef COLIBRI_ARMV7EM_EXP_H
#define COLIBRI_ARMV7EM_EXP_H

#include "asm.h"

/* constants.c's table: its first six, then twelve for EXP. */
#define MINUS_LOG2E s4
#define RINT_MAGIC s5
#define LN2_HI s6
#define LN2_LO s7
#define E6 s8
#define LIMIT s9

/* clang-format off */
.macro EXP_CONSTANTS address
    movw \address, #:lower16:colibri_exp_armv7em
    movt \address, #:upper16:colibri_exp_armv7em
    vldm \address!, {s4-s9}
.endm

/* s0, s1 = snap(exp(-s0)), snap(exp(-s1)), both 0 to 28. address: from EXP_CONSTANTS. r4 to r7, s2, s3, s16 to s27 are lost. */
.macro EXP address
    vmul.f32 s2, s0, MINUS_LOG2E
    vmul.f32 s3, s1, MINUS_LOG2E
    vadd.f32 s2, s2, RINT_MAGIC     /* k in the low bits */
    vadd.f32 s3, s3, RINT_MAGIC
    vsub.f32 s16, s2, RINT_MAGIC
    vsub.f32 s17, s3, RINT_MAGIC
    vfma.f32 s0, s16, LN2_HI
    vfma.f32 s1, s17, LN2_HI
    vfma.f32 s0, s16, LN2_LO        /* -r */
    vfma.f32 s1, s17, LN2_LO
    vldm \address, {s16-s27}
    vfms.f32 s16, s0, E6
    vfms.f32 s17, s1, E6
    vfms.f32 s18, s0, s16
    vfms.f32 s19, s1, s17
    vfms.f32 s20, s0, s18
    vfms.f32 s21, s1, s19
    vfms.f32 s22, s0, s20
    vfms.f32 s23, s1, s21
    vfms.f32 s24, s0, s22
    vfms.f32 s25, s1, s23
    vfms.f32 s26, s0, s24
    vfms.f32 s27, s1, s25
    vmov r4, r5, s2, s3
    vmov r6, r7, s26, s27
    add r6, r6, r4, lsl #23
    add r7, r7, r5, lsl #23
    vmov s0, s1, r6, r7
    vmul.f32 s0, s0, DOWN
    vmul.f32 s1, s1, DOWN
    vmul.f32 s0, s0, UP
    vmul.f32 s1, s1, UP
.endm
/* clang-format on */

#endif
