/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#if COLIBRI_N_EXPERTS > 0

void colibri_router_logits(const colibri_model_t *model, colibri_state_t *state, uint32_t begin, uint32_t end)
{
    const float *row = colibri_floats_at(model->image + colibri_layer_offsets[state->header.layer].router);
    row += (size_t)begin * COLIBRI_HIDDEN_PAD;
    for (uint32_t e = begin; e < end; e++) {
        state->router[e] = colibri_kernels.dot(row, state->norm, COLIBRI_HIDDEN_SIZE);
        row += COLIBRI_HIDDEN_PAD;
    }
}

/* TOP_K passes, each for the best expert that comes after the last one chosen in the order (logit descending, id rising): no
 * marks, so the logits stay, and no branch. The first pass comes after a key that no logit has. The chosen logits come back from their
 * keys: loading them would be an access whose address depends on the choice.
 */
void colibri_route(int32_t *ids, float *weights, const float *logits)
{
    uint32_t last_key = 0xffffffffu;
    uint32_t last_id = 0;
    for (uint32_t j = 0; j < COLIBRI_TOP_K; j++) {
        uint32_t best_key = 0;
        uint32_t best_id = 0;
        for (uint32_t e = 0; e < COLIBRI_N_EXPERTS; e++) {
            uint32_t key = colibri_order_key(logits[e]);
            uint32_t after = colibri_mask_below_u32(key, last_key) |
                             (colibri_mask_equal(key, last_key) & colibri_mask_below(last_id, e));
            uint32_t better = after & colibri_mask_below_u32(best_key, key);
            best_key = colibri_select(better, key, best_key);
            best_id = colibri_select(better, e, best_id);
        }
        ids[j] = (int32_t)best_id;
        weights[j] = colibri_from_order_key(best_key);
        last_key = best_key;
        last_id = best_id;
    }
    colibri_kernels.softmax(weights, COLIBRI_TOP_K);
}

#endif
