/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#define ELEMENT_LOG2 2
#include "kv_rows.h"

#if defined(__ARM_FEATURE_DSP) && !COLIBRI_KV_F16 && !COLIBRI_KV_Q8

.macro LOAD_EIGHT cursor
    vldm \cursor!, {s24-s31}
.endm

.macro LOAD_ONE cursor
    vldm \cursor!, {s24}
.endm

.macro LOAD_SCALE
.endm

SCORES colibri_scores_f32_armv7em
MIX colibri_mix_f32_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
