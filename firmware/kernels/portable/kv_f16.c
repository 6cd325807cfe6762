/* SPDX-License-Identifier: Apache-2.0 */
#include "half.h"

#if COLIBRI_KV_F16

#define KV_ELEMENT uint16_t
#define KV_WIDEN(element, scale) colibri_widen_half(element)
#define KV_SCALE(rows, t) 0.0f
#define COLIBRI_SCORES colibri_scores_f16_portable
#define COLIBRI_MIX colibri_mix_f16_portable
#include "kv_rows.h"

void colibri_narrow_f16_portable(uint16_t *out, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = colibri_narrow_half(x[i]);
    }
}

#endif
