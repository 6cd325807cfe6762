/* SPDX-License-Identifier: Apache-2.0 */
/* What the assembly files of the float operators share. GNU as and clang take them, after the C preprocessor.
 *
 * snap (docs/NUMERICS.md, section 2) without a branch or a comparison: with flush to zero on, x * 2**-86 is a zero exactly where
 * |x| < 2**-40, and the product of the two powers is 1. The sum with +0.0 makes +0.0 of -0.0. That mode takes nothing else here:
 * what these operators compute is a multiple of 2**-126 until it is snapped (section 2 again).
 *
 * An assembly file includes model_config.h and names.h before: they may rename what it defines.
 */
#ifndef COLIBRI_ARMV7EM_ASM_H
#define COLIBRI_ARMV7EM_ASM_H

#include "constants.h"

/* 2**-86, 2**86 and +0.0, where FLUSH_ON puts them. */
#define DOWN s13
#define UP s14
#define ZERO s15

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
    .size \name, . - \name
.endm

/* vmsr fpscr, \saved ends it. */
.macro FLUSH_ON saved, temporary
    mov \temporary, #DOWN_BITS
    vmov DOWN, \temporary
    mov \temporary, #UP_BITS
    vmov UP, \temporary
    mov \temporary, #0
    vmov ZERO, \temporary
    vmrs \saved, fpscr
    orr \temporary, \saved, #(1 << 24)
    vmsr fpscr, \temporary
.endm

/* op a, a, x for each of four registers: no result is used by the next instruction. */
.macro FOUR op, a, b, c, d, x
    \op \a, \a, \x
    \op \b, \b, \x
    \op \c, \c, \x
    \op \d, \d, \x
.endm

.macro FOUR_BY op, a, b, c, d, w, x, y, z
    \op \a, \a, \w
    \op \b, \b, \x
    \op \c, \c, \y
    \op \d, \d, \z
.endm

/* snap but for the sign of a zero: enough for a factor, and for what is not negative. */
.macro SNAP_FACTOR a
    vmul.f32 \a, \a, DOWN
    vmul.f32 \a, \a, UP
.endm

.macro SNAP a
    SNAP_FACTOR \a
    vadd.f32 \a, \a, ZERO
.endm

.macro SNAP_FACTOR_FOUR a, b, c, d
    FOUR vmul.f32, \a, \b, \c, \d, DOWN
    FOUR vmul.f32, \a, \b, \c, \d, UP
.endm

.macro SNAP_FOUR a, b, c, d
    SNAP_FACTOR_FOUR \a, \b, \c, \d
    FOUR vadd.f32, \a, \b, \c, \d, ZERO
.endm

/* The eight lanes of dot8, s0 to s7, to s0. */
.macro DOT8_END
    vadd.f32 s0, s0, s4
    vadd.f32 s1, s1, s5
    vadd.f32 s2, s2, s6
    vadd.f32 s3, s3, s7
    vadd.f32 s0, s0, s2
    vadd.f32 s1, s1, s3
    vadd.f32 s0, s0, s1
.endm
/* clang-format on */

#endif
