/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic top-k (docs/NUMERICS.md, section 7.8, step 5): how many of the best experts run. No branch on the data here; the walk then
 * leaves out the slots without an expert.
 */
#include "internal.h"

#if COLIBRI_HAS_TOP_P

/* A sum that is not a number is not below p: what follows the expert that made it so does not run. */
void colibri_shortest_prefix(int32_t *ids, float *scores, uint32_t router)
{
    (void)router;
    const uint32_t p = colibri_order_key(COLIBRI_ROUTER_TOP_P(router));
    uint32_t is_short = 0xffffffffu;
    float sum = 0.0f;
    for (uint32_t j = 0; j < COLIBRI_ROUTER_TOP_K(router); j++) {
        ids[j] = (int32_t)colibri_select(is_short, (uint32_t)ids[j], (uint32_t)COLIBRI_NO_EXPERT);
        scores[j] = colibri_from_bits(colibri_bits(scores[j]) & is_short);
        sum += scores[j];
        is_short &= colibri_mask_below_u32(colibri_order_key(sum), p);
    }
}

#endif
