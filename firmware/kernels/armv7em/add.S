/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#include "asm.h"

#if defined(__ARM_FEATURE_DSP)

/* void colibri_add_armv7em(float *x, const float *y, uint32_t n) */
FUNCTION colibri_add_armv7em
    FLUSH_ON r12, r3
    subs r2, #4
    blo 2f
1:  vldm r0, {s4-s7}
    vldm r1!, {s8-s11}
    FOUR_BY vadd.f32, s4, s5, s6, s7, s8, s9, s10, s11
    SNAP_FOUR s4, s5, s6, s7
    vstm r0!, {s4-s7}
    subs r2, #4
    bhs 1b
2:  adds r2, #4
    beq 4f
3:  vldr s4, [r0]
    vldm r1!, {s8}
    vadd.f32 s4, s4, s8
    SNAP s4
    vstm r0!, {s4}
    subs r2, #1
    bne 3b
4:  vmsr fpscr, r12
    bx lr
END colibri_add_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
