/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__ARM_FEATURE_MVE)

#define SCORES colibri_scores_f32_mve
#define MIX colibri_mix_f32_mve
#define KV_BYTES 4

.macro KV_LOAD q, from, at
    vldrw.u32 q\q, [\from, #16 * \at]
.endm

.macro KV_NEXT q, from, t
    vldrw\t\().u32 q\q, [\from], #16
.endm

.macro KV_SCALE
.endm

#include "kv_rows.h"

#endif
