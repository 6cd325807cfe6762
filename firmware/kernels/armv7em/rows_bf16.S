/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#define ELEMENT_LOG2 1
#include "kv_rows.h"

#if defined(__ARM_FEATURE_DSP) && COLIBRI_USE_BF16

/* Two elements: a bfloat16 is the upper half of a binary32. */
.macro LOAD_TWO cursor, a, b
    ldr r11, [\cursor], #4
    lsl r10, r11, #16
    bfc r11, #0, #16
    vmov \a, \b, r10, r11
.endm

.macro LOAD_EIGHT cursor
    LOAD_TWO \cursor, s24, s25
    LOAD_TWO \cursor, s26, s27
    LOAD_TWO \cursor, s28, s29
    LOAD_TWO \cursor, s30, s31
.endm

.macro LOAD_ONE cursor
    ldrh r10, [\cursor], #2
    lsl r10, r10, #16
    vmov s24, r10
.endm

.macro LOAD_SCALE
.endm

SCORES colibri_scores_bf16_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
