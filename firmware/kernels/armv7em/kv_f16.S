/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#define ELEMENT_LOG2 1
#include "kv_rows.h"

#if defined(__ARM_FEATURE_DSP)

/* Not ldm: rows of an odd number of elements are not aligned. A -0.0 need not be snapped: it adds nothing to a sum. */
.macro LOAD_EIGHT cursor
    ldr r10, [\cursor], #4
    ldr r11, [\cursor], #4
    vmov s8, s9, r10, r11
    ldr r10, [\cursor], #4
    ldr r11, [\cursor], #4
    vmov s10, s11, r10, r11
    vcvtb.f32.f16 s24, s8
    vcvtt.f32.f16 s25, s8
    vcvtb.f32.f16 s26, s9
    vcvtt.f32.f16 s27, s9
    vcvtb.f32.f16 s28, s10
    vcvtt.f32.f16 s29, s10
    vcvtb.f32.f16 s30, s11
    vcvtt.f32.f16 s31, s11
.endm

.macro LOAD_ONE cursor
    ldrh r10, [\cursor], #2
    vmov s8, r10
    vcvtb.f32.f16 s24, s8
.endm

.macro LOAD_SCALE
.endm

#if COLIBRI_KV_F16 || COLIBRI_USE_F16
SCORES colibri_scores_f16_armv7em
#endif

#if COLIBRI_KV_F16
MIX colibri_mix_f16_armv7em

/* void colibri_narrow_f16_armv7em(uint16_t *out, const float *x, uint32_t n) */
FUNCTION colibri_narrow_f16_armv7em
    subs r2, #4
    blo 2f
1:  vldm r1!, {s0-s3}
    vcvtb.f16.f32 s4, s0
    vcvtb.f16.f32 s5, s2
    vcvtt.f16.f32 s4, s1
    vcvtt.f16.f32 s5, s3
    vmov r3, r12, s4, s5
    str r3, [r0], #4
    str r12, [r0], #4
    subs r2, #4
    bhs 1b
2:  adds r2, #4
    beq 4f
3:  vldm r1!, {s0}
    vcvtb.f16.f32 s4, s0
    vmov r3, s4
    strh r3, [r0], #2
    subs r2, #1
    bne 3b
4:  bx lr
END colibri_narrow_f16_armv7em
#endif

#endif

    .section .note.GNU-stack, "", %progbits
