/* SPDX-License-Identifier: Apache-2.0 */
/* One query head at a time: its scores in the scratch, its output in place of its query. */
#include "internal.h"

uint32_t colibri_attention_begin(uint32_t position)
{
#if COLIBRI_WINDOW > 0
    return position >= COLIBRI_WINDOW ? position - COLIBRI_WINDOW + 1u : 0u;
#else
    (void)position;
    return 0;
#endif
}

static void attend(colibri_state_t *state, float *head, uint32_t kv_head)
{
    const uint32_t layer = state->header.layer;
    const uint32_t begin = colibri_attention_begin(state->header.position);
    const uint32_t at = kv_head * COLIBRI_HEAD_DIM;
    float *z = state->scratch + COLIBRI_SCRATCH_SCORES;
    colibri_kv_rows_t keys = {
        .values = &state->k[layer][begin][at],
        .n_rows = state->header.position + 1 - begin,
        .n_cols = COLIBRI_HEAD_DIM,
        .stride = COLIBRI_KV_ELEMS,
        .scale_stride = COLIBRI_N_KV_HEADS,
    };
    colibri_kv_rows_t values = keys;
    values.values = &state->v[layer][begin][at];
#if COLIBRI_KV_Q8
    keys.scales = &state->k_scale[layer][begin][kv_head];
    values.scales = &state->v_scale[layer][begin][kv_head];
#endif
    colibri_kernels.scores(z, head, &keys);
    colibri_kernels.softmax(z, keys.n_rows);
    colibri_kernels.mix(head, z, &values);
}

void colibri_attention(colibri_state_t *state, uint32_t head_begin, uint32_t head_end)
{
    /* Not h / heads_per_kv_head: a division is a library call on some cores. */
    uint32_t head = 0;
    for (uint32_t kv_head = 0; kv_head < COLIBRI_N_KV_HEADS; kv_head++) {
        for (uint32_t i = 0; i < COLIBRI_N_HEADS / COLIBRI_N_KV_HEADS; i++, head++) {
            if (head >= head_begin && head < head_end) {
                attend(state, state->q + head * COLIBRI_HEAD_DIM, kv_head);
            }
        }
    }
}
