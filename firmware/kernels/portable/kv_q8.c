/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_KV_Q8

#define KV_ELEMENT int8_t
#define KV_WIDEN(element, scale) colibri_snap((float)(element) * (scale))
#define KV_SCALE(rows, t) (rows)->scales[(size_t)(t) * (rows)->scale_stride]
#define COLIBRI_SCORES colibri_scores_q8_portable
#define COLIBRI_MIX colibri_mix_q8_portable
#include "kv_rows.h"

#endif
