/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#include "asm.h"

#if defined(__ARM_FEATURE_DSP)

/* void colibri_scale_armv7em(float *x, float a, uint32_t n) */
FUNCTION colibri_scale_armv7em
    FLUSH_ON r2, r3
    subs r1, #4
    blo 2f
1:  vldm r0, {s4-s7}
    FOUR vmul.f32, s4, s5, s6, s7, s0
    SNAP_FOUR s4, s5, s6, s7
    vstm r0!, {s4-s7}
    subs r1, #4
    bhs 1b
2:  adds r1, #4
    beq 4f
3:  vldr s4, [r0]
    vmul.f32 s4, s4, s0
    SNAP s4
    vstm r0!, {s4}
    subs r1, #1
    bne 3b
4:  vmsr fpscr, r2
    bx lr
END colibri_scale_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
