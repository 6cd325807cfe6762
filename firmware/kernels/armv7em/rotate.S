/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#include "asm.h"

#if defined(__ARM_FEATURE_DSP)

/* void colibri_rotate_armv7em(float *x, const float *cos, const float *sin, uint32_t n_pairs, uint32_t step, uint32_t distance)
 *
 * r0, r4   x0 and x1 of the pair      r5   bytes to the next
 */
FUNCTION colibri_rotate_armv7em
    push {r4-r6, lr}
    ldrd r5, r4, [sp, #16]
    add r4, r0, r4, lsl #2
    lsl r5, r5, #2
    FLUSH_ON r12, r6
    cbz r3, 2f
1:  vldr s0, [r0]
    vldr s1, [r4]
    vldm r1!, {s2}
    vldm r2!, {s3}
    vmul.f32 s4, s0, s2
    vmul.f32 s5, s1, s2
    vmul.f32 s4, s4, DOWN
    vmul.f32 s5, s5, DOWN
    vmul.f32 s4, s4, UP
    vmul.f32 s5, s5, UP
    vfms.f32 s4, s1, s3
    vfma.f32 s5, s0, s3
    vmul.f32 s4, s4, DOWN
    vmul.f32 s5, s5, DOWN
    vmul.f32 s4, s4, UP
    vmul.f32 s5, s5, UP
    vadd.f32 s4, s4, ZERO
    vadd.f32 s5, s5, ZERO
    vstr s4, [r0]
    vstr s5, [r4]
    add r0, r5
    add r4, r5
    subs r3, #1
    bne 1b
2:  vmsr fpscr, r12
    pop {r4-r6, pc}
END colibri_rotate_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
