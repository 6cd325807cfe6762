/* SPDX-License-Identifier: Apache-2.0 */
/* What the assembly files of this folder share. GNU as and clang take them, after the C preprocessor. */
#ifndef COLIBRI_MVE_ASM_H
#define COLIBRI_MVE_ASM_H

#include "constants.h"

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

/* q = snap(q) of docs/NUMERICS.md, section 2; t is lost, limit is a register with SNAP_BITS. */
.macro SNAP q, t, limit
    vabs.f32 \t, \q
    vpt.f32 lt, \t, \limit
    veort \q, \q, \q
.endm
/* clang-format on */

#endif
