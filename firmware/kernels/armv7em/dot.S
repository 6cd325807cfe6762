/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#include "asm.h"

#if defined(__ARM_FEATURE_DSP)

.macro LANE lane, a, b
    vldm r0!, {\a}
    vldm r1!, {\b}
    vfma.f32 \lane, \a, \b
    subs r2, #1
    beq 3f
.endm

/* float colibri_dot_armv7em(const float *a, const float *b, uint32_t n) */
FUNCTION colibri_dot_armv7em
    vpush {s16-s23}
    mov r3, #0
    vmov s0, s1, r3, r3
    vmov s2, s3, r3, r3
    vmov s4, s5, r3, r3
    vmov s6, s7, r3, r3
    subs r2, #8
    blo 2f
1:  vldm r0!, {s8-s15}
    vldm r1!, {s16-s23}
    vfma.f32 s0, s8, s16
    vfma.f32 s1, s9, s17
    vfma.f32 s2, s10, s18
    vfma.f32 s3, s11, s19
    vfma.f32 s4, s12, s20
    vfma.f32 s5, s13, s21
    vfma.f32 s6, s14, s22
    vfma.f32 s7, s15, s23
    subs r2, #8
    bhs 1b
2:  adds r2, #8
    beq 3f
    LANE s0, s8, s16
    LANE s1, s9, s17
    LANE s2, s10, s18
    LANE s3, s11, s19
    LANE s4, s12, s20
    LANE s5, s13, s21
    LANE s6, s14, s22
3:  DOT8_END
    vmov r0, s0
    lsl r1, r0, #1
    cmp r1, #(SNAP_BITS << 1)
    it lo
    movlo r0, #0
    vmov s0, r0
    vpop {s16-s23}
    bx lr
END colibri_dot_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
