/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#if COLIBRI_MAX_EXPERTS > 0

/* k passes, each for the best that comes after the last one chosen in the order (value descending, index rising): no marks, so the
 * values stay, and no branch. The first pass comes after a key that no value has. The chosen values come back from their keys:
 * loading them would be an access whose address depends on the choice.
 */
void colibri_top_k(int32_t *ids, float *chosen, const float *values, uint32_t n, uint32_t k)
{
    uint32_t last_key = 0xffffffffu;
    uint32_t last_id = 0;
    for (uint32_t j = 0; j < k; j++) {
        uint32_t best_key = 0;
        uint32_t best_id = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t key = colibri_order_key(values[i]);
            uint32_t after = colibri_mask_below_u32(key, last_key) |
                             (colibri_mask_equal(key, last_key) & colibri_mask_below(last_id, i));
            uint32_t better = after & colibri_mask_below_u32(best_key, key);
            best_key = colibri_select(better, key, best_key);
            best_id = colibri_select(better, i, best_id);
        }
        ids[j] = (int32_t)best_id;
        chosen[j] = colibri_from_order_key(best_key);
        last_key = best_key;
        last_id = best_id;
    }
}

#endif
