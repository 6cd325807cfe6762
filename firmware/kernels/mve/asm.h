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

/* q = snap(q) of docs/NUMERICS.md, section 2; t is lost, limit is a register with SNAP_BITS. */
.macro SNAP q, t, limit
    vabs.f32 \t, \q
    vpt.f32 lt, \t, \limit
    veort \q, \q, \q
.endm

/* The same where no lane is negative. */
.macro SNAP_POSITIVE q, limit
    vpt.f32 lt, \q, \limit
    veort \q, \q, \q
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
