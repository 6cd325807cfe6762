/* SPDX-License-Identifier: Apache-2.0 */
/* What the assembly files of this folder share. GNU as and clang take them, after the C preprocessor. */
#ifndef COLIBRI_MVE_ASM_H
#define COLIBRI_MVE_ASM_H

#include "constants.h"
#include "model_config.h"

#include "colibri/names.h"

/* clang-format off */
    .syntax unified
    .thumb

.macro FUNCTION name
    .section .text.\name, "ax", %progbits
    .balign 4
    .global \name
    .type \name, %function
    .thumb_func
\name:
.endm

.macro END name
    .ltorg
    .size \name, . - \name
.endm

/* snap of docs/NUMERICS.md, section 2: MVE flushes subnormals, so that x * 2**-86 is a zero exactly where |x| < 2**-40; times 2**86
 * it is x again, and the sum with +0.0 makes +0.0 of -0.0. */
.macro SNAP_BEGIN up, down, zero
    mov \zero, #UP_BITS
    vdup.32 \up, \zero
    mov \zero, #0
    mov \down, #DOWN_BITS
.endm

.macro SNAP q, up, down, zero
    vmul.f32 \q, \q, \down
    vfmas.f32 \q, \up, \zero
.endm

/* vcvtb.f32.f16 of the vector of a number to itself, exact, subnormals included. As a word, because GNU as 2.40 encodes another register than q0 wrongly. */
.macro WIDEN_HALF q
    .inst.w 0xfe3f0e01 | \q << 13 | \q << 1
.endm

/* dot8 of docs/NUMERICS.md, section 4, lanes 0 to 3 in q0 and 4 to 7 in q1. The last n elements, 1 to 7, of two float vectors:
 * lanes that are not loaded are zero, and add nothing. n is lost. */
.macro DOT8_TAIL a, b, n
    vctp.32 \n
    vpstt
    vldrwt.u32 q2, [\a], #16
    vldrwt.u32 q3, [\b], #16
    vfma.f32 q0, q2, q3
    subs \n, #4
    it lo
    movlo \n, #0
    vctp.32 \n
    vpstt
    vldrwt.u32 q2, [\a], #16
    vldrwt.u32 q3, [\b], #16
    vfma.f32 q1, q2, q3
.endm

/* The eight lanes to s0. */
.macro DOT8_END
    vadd.f32 q0, q0, q1
    vadd.f32 s0, s0, s2
    vadd.f32 s1, s1, s3
    vadd.f32 s0, s0, s1
.endm
/* clang-format on */

#endif
