/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#define ELEMENT_LOG2 2
#include "kv_rows.h"

#if defined(__ARM_FEATURE_DSP)

.macro LOAD_EIGHT cursor
    vldm \cursor!, {s24-s31}
.endm

.macro LOAD_ONE cursor
    vldm \cursor!, {s24}
.endm

.macro LOAD_SCALE
.endm

#if (!COLIBRI_KV_F16 && !COLIBRI_KV_Q8) || COLIBRI_USE_F32
SCORES colibri_scores_f32_armv7em
#endif
#if !COLIBRI_KV_F16 && !COLIBRI_KV_Q8
MIX colibri_mix_f32_armv7em
#endif

#endif

    .section .note.GNU-stack, "", %progbits
