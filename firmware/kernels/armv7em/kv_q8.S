/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#define ELEMENT_LOG2 0
#include "kv_rows.h"

#if defined(__ARM_FEATURE_DSP) && COLIBRI_KV_Q8

/* Not snapped: see portable/kv_q8.c. */
.macro LOAD_FOUR cursor, a, b, c, d
    ldr lr, [\cursor], #4
    sxtb r10, lr
    sxtb r11, lr, ror #8
    vmov \a, \b, r10, r11
    sxtb r10, lr, ror #16
    sxtb r11, lr, ror #24
    vmov \c, \d, r10, r11
    vcvt.f32.s32 \a, \a
    vcvt.f32.s32 \b, \b
    vcvt.f32.s32 \c, \c
    vcvt.f32.s32 \d, \d
    FOUR vmul.f32, \a, \b, \c, \d, s12
.endm

.macro LOAD_EIGHT cursor
    LOAD_FOUR \cursor, s24, s25, s26, s27
    LOAD_FOUR \cursor, s28, s29, s30, s31
.endm

.macro LOAD_ONE cursor
    ldrsb r10, [\cursor], #1
    vmov s24, r10
    vcvt.f32.s32 s24, s24
    vmul.f32 s24, s24, s12
.endm

.macro LOAD_SCALE
    vldr s12, [r9]
    add r9, r12
.endm

SCORES colibri_scores_q8_armv7em
MIX colibri_mix_q8_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
