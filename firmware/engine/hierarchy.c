/* SPDX-License-Identifier: Apache-2.0 */
/* A gate of two levels (docs/NUMERICS.md, section 7.8, at the end). No branch on the data, no access whose address depends on it. */
#include "internal.h"

#if COLIBRI_HAS_HIERARCHY

/* The logits of one group's own gate. */
static void members_of(float *members, const float *logits, uint32_t n_groups, uint32_t size, uint32_t group)
{
    for (uint32_t i = 0; i < size; i++) {
        uint32_t bits = 0;
        for (uint32_t g = 0; g < n_groups; g++) {
            bits |= colibri_bits(logits[g * size + i]) & colibri_mask_equal(g, group);
        }
        members[i] = colibri_from_bits(bits);
    }
}

/* The groups and their weights stand where the first experts will; from the last group on, so that none is overwritten before it is
 * read. */
void colibri_route_by_hierarchy(int32_t *ids, float *weights, const float *logits, uint32_t router, float *scratch)
{
    (void)router;
    const uint32_t n_groups = COLIBRI_ROUTER_N_GROUPS(router);
    const uint32_t size = COLIBRI_ROUTER_GROUP_SIZE(router);
    const uint32_t top_groups = COLIBRI_ROUTER_TOP_GROUPS(router);
    const uint32_t k = COLIBRI_ROUTER_GROUP_TOP_K(router);
    float *members = scratch + COLIBRI_SCRATCH_ROUTER_SCORES;
    colibri_top_k(ids, weights, scratch + COLIBRI_SCRATCH_ROUTER_HIDDEN, n_groups, top_groups);
    colibri_kernels.softmax(weights, top_groups);
    for (uint32_t i = top_groups; i-- > 0;) {
        const uint32_t group = (uint32_t)ids[i];
        const float of_group = weights[i];
        members_of(members, logits, n_groups, size, group);
        colibri_top_k(ids + i * k, weights + i * k, members, size, k);
        colibri_kernels.softmax(weights + i * k, k);
        colibri_kernels.scale(weights + i * k, of_group, k);
        for (uint32_t j = i * k; j < (i + 1) * k; j++) {
            ids[j] += (int32_t)(group * size);
        }
    }
}

#endif
