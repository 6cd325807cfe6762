/* SPDX-License-Identifier: Apache-2.0 */
/* Sparsemixer (docs/NUMERICS.md, section 7.8, at the end). No branch on the data. */
#include "../kernels/functions.h"
#include "internal.h"

#if COLIBRI_HAS_SPARSEMIXER

/* All ones where expert e is among the first n of ids. */
static uint32_t is_chosen(const int32_t *ids, uint32_t n, uint32_t e)
{
    uint32_t chosen = 0;
    for (uint32_t j = 0; j < n; j++) {
        chosen |= colibri_mask_equal((uint32_t)ids[j], e);
    }
    return chosen;
}

/* The sum over the experts that are not chosen and close enough to the largest logit m. */
static float sum_of_close(const float *logits, const int32_t *ids, uint32_t n_chosen, float m, uint32_t router)
{
    (void)router;
    float sum = 0.0f;
    for (uint32_t e = 0; e < COLIBRI_ROUTER_N_EXPERTS(router); e++) {
        float bound = colibri_max(colibri_from_bits(colibri_magnitude(logits[e])), m) * COLIBRI_ROUTER_JITTER(router);
        float distance = m - logits[e];
        uint32_t far = colibri_mask_below_u32(colibri_order_key(bound), colibri_order_key(distance));
        uint32_t takes_part = ~(far | is_chosen(ids, n_chosen, e));
        sum += colibri_from_bits(colibri_bits(colibri_exp(colibri_snap(distance))) & takes_part);
    }
    return sum;
}

void colibri_sparsemixer(int32_t *ids, float *weights, const float *logits, uint32_t router)
{
    colibri_top_k(ids, weights, logits, COLIBRI_ROUTER_N_EXPERTS(router), COLIBRI_ROUTER_TOP_K(router));
    for (uint32_t j = 0; j < COLIBRI_ROUTER_TOP_K(router); j++) {
        weights[j] = colibri_snap(1.0f / sum_of_close(logits, ids, j, weights[j], router));
    }
}

#endif
