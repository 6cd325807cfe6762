/* SPDX-License-Identifier: Apache-2.0 */
/* Experts that take only so many tokens of a source (docs/NUMERICS.md, section 7.8, step 8). */
#include "internal.h"

#if COLIBRI_HAS_CAPACITY

/* No access whose address depends on the choice. */
void colibri_limit_to_capacity(colibri_state_t *state, uint32_t router)
{
    const uint32_t capacity = COLIBRI_ROUTER_CAPACITY(router);
    (void)router;
    if (capacity == 0) {
        return;
    }
    uint32_t before = 0;
    for (uint32_t e = 0; e < COLIBRI_ROUTER_N_EXPERTS(router); e++) {
        const uint32_t chosen = colibri_mask_equal(e, (uint32_t)state->expert_ids[0]);
        before |= state->taken[e] & chosen;
        state->taken[e] += chosen & 1u;
    }
    const float weight = state->expert_weights[0];
    state->expert_weights[0] = colibri_from_bits(colibri_bits(weight) & colibri_mask_below(before, capacity));
}

#endif
