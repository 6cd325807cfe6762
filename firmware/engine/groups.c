/* SPDX-License-Identifier: Apache-2.0 */
/* Group-limited routing (docs/NUMERICS.md, section 7.8, step 4). No branch on the data. */
#include "internal.h"

#if COLIBRI_HAS_GROUPS

#define EXCLUDED_BITS 0xff800000u /* minus infinity: below every selection value */

/* The largest of n values, or the sum of the two largest. */
static float group_value(const float *values, uint32_t n, uint32_t top2)
{
    uint32_t largest = 0;
    uint32_t second = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t key = colibri_order_key(values[i]);
        uint32_t above = colibri_mask_below_u32(largest, key);
        uint32_t lesser = colibri_select(above, largest, key);
        largest = colibri_select(above, key, largest);
        second = colibri_select(colibri_mask_below_u32(second, lesser), lesser, second);
    }
    if (top2) {
        return colibri_snap(colibri_from_order_key(largest) + colibri_from_order_key(second));
    }
    return colibri_from_order_key(largest);
}

/* All ones where fewer than `top` groups come before group g. */
static uint32_t stays(const float *of_groups, uint32_t n_groups, uint32_t g, uint32_t top)
{
    uint32_t key = colibri_order_key(of_groups[g]);
    uint32_t n_before = 0;
    for (uint32_t other = 0; other < n_groups; other++) {
        uint32_t its_key = colibri_order_key(of_groups[other]);
        uint32_t before = colibri_mask_below_u32(key, its_key) | (colibri_mask_equal(key, its_key) & colibri_mask_below(other, g));
        n_before += before & 1u;
    }
    return colibri_mask_below(n_before, top);
}

void colibri_limit_groups(float *choice, uint32_t router, float *of_groups)
{
    (void)router;
    const uint32_t n_groups = COLIBRI_ROUTER_N_GROUPS(router);
    const uint32_t size = COLIBRI_ROUTER_GROUP_SIZE(router);
    const uint32_t others = COLIBRI_ROUTER_GROUP_ZERO(router) ? 0u : EXCLUDED_BITS;
    for (uint32_t g = 0; g < n_groups; g++) {
        of_groups[g] = group_value(choice + g * size, size, COLIBRI_ROUTER_GROUP_TOP2(router));
    }
    for (uint32_t g = 0; g < n_groups; g++) {
        uint32_t kept = stays(of_groups, n_groups, g, COLIBRI_ROUTER_TOP_GROUPS(router));
        for (uint32_t i = g * size; i < (g + 1) * size; i++) {
            choice[i] = colibri_from_bits(colibri_select(kept, colibri_bits(choice[i]), others));
        }
    }
}

#endif
