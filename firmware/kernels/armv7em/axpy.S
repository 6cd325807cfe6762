/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#include "asm.h"

#if defined(__ARM_FEATURE_DSP)

/* void colibri_axpy_armv7em(float *y, float a, const float *x, uint32_t n) */
FUNCTION colibri_axpy_armv7em
    subs r2, #4
    blo 2f
1:  vldm r0, {s4-s7}
    vldm r1!, {s8-s11}
    vfma.f32 s4, s0, s8
    vfma.f32 s5, s0, s9
    vfma.f32 s6, s0, s10
    vfma.f32 s7, s0, s11
    vstm r0!, {s4-s7}
    subs r2, #4
    bhs 1b
2:  adds r2, #4
    beq 4f
3:  vldr s4, [r0]
    vldm r1!, {s8}
    vfma.f32 s4, s0, s8
    vstm r0!, {s4}
    subs r2, #1
    bne 3b
4:  bx lr
END colibri_axpy_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
