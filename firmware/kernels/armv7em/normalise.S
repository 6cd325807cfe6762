/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#include "asm.h"

#if defined(__ARM_FEATURE_DSP)

/* void colibri_normalise_armv7em(float *out, const float *x, float inv, const float *weights, uint32_t n) */
FUNCTION colibri_normalise_armv7em
    push {r4, lr}
    FLUSH_ON r12, r4
    subs r3, #4
    blo 2f
1:  vldm r1!, {s4-s7}
    vldm r2!, {s8-s11}
    FOUR vmul.f32, s4, s5, s6, s7, s0
    SNAP_FACTOR_FOUR s4, s5, s6, s7
    FOUR_BY vmul.f32, s4, s5, s6, s7, s8, s9, s10, s11
    SNAP_FOUR s4, s5, s6, s7
    vstm r0!, {s4-s7}
    subs r3, #4
    bhs 1b
2:  adds r3, #4
    beq 4f
3:  vldm r1!, {s4}
    vldm r2!, {s8}
    vmul.f32 s4, s4, s0
    SNAP_FACTOR s4
    vmul.f32 s4, s4, s8
    SNAP s4
    vstm r0!, {s4}
    subs r3, #1
    bne 3b
4:  vmsr fpscr, r12
    pop {r4, pc}
END colibri_normalise_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
