/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_KV_Q8

/* The contract snaps this product, which changes nothing: a scale that quantise wrote is at least 2**-40, or 0 beside zeros. */
#define KV_ELEMENT int8_t
#define KV_WIDEN(element, scale) ((float)(element) * (scale))
#define KV_SCALE(rows, t) (rows)->scales[(size_t)(t) * (rows)->scale_stride]
#define COLIBRI_SCORES colibri_scores_q8_portable
#define COLIBRI_MIX colibri_mix_q8_portable
#include "kv_rows.h"

#endif
