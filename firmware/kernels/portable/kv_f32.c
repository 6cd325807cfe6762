/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_KV_F32

#define KV_ELEMENT float
#define KV_WIDEN(element, scale) (element)
#define KV_SCALE(rows, t) 0.0f
#define COLIBRI_SCORES colibri_scores_f32_portable
#define COLIBRI_MIX colibri_mix_f32_portable
#include "kv_rows.h"

#endif
