/* SPDX-License-Identifier: Apache-2.0 */
/* One query head at a time: its scores in the scratch, its output in place of its query. */
#include "functions.h"
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

/* The scores to probabilities, in place. ALIAS: z[t] at its position's index. */
static void softmax(float *z, uint32_t begin, uint32_t end)
{
    uint32_t largest = colibri_order_key(z[begin]);
    for (uint32_t t = begin + 1; t < end; t++) {
        uint32_t key = colibri_order_key(z[t]);
        largest = colibri_select(colibri_mask_below_u32(largest, key), key, largest);
    }
    float m = colibri_from_order_key(largest);
    float sum = 0.0f;
    for (uint32_t t = begin; t < end; t++) {
        z[t] = colibri_exp(colibri_snap(z[t] - m));
        sum += z[t];
    }
    for (uint32_t t = begin; t < end; t++) {
        z[t] = colibri_snap(z[t] / sum);
    }
}

static void attend(colibri_state_t *state, float *head, uint32_t kv_head)
{
    const uint32_t layer = state->header.layer;
    const uint32_t end = state->header.position + 1;
    const uint32_t begin = colibri_attention_begin(state->header.position);
    const uint32_t at = kv_head * COLIBRI_HEAD_DIM;
    float *z = state->scratch + COLIBRI_SCRATCH_SCORES;

    for (uint32_t t = begin; t < end; t++) {
#if COLIBRI_KV_Q8
        z[t] = colibri_snap(
            colibri_kernels.dot_q8(head, &state->k[layer][t][at], state->k_scale[layer][t][kv_head], COLIBRI_HEAD_DIM));
#else
        z[t] = colibri_snap(colibri_kernels.dot(head, &state->k[layer][t][at], COLIBRI_HEAD_DIM));
#endif
    }
    softmax(z, begin, end);
    memset(head, 0, COLIBRI_HEAD_DIM * sizeof(float));
    for (uint32_t t = begin; t < end; t++) {
#if COLIBRI_KV_Q8
        colibri_kernels.axpy_q8(head, z[t], &state->v[layer][t][at], state->v_scale[layer][t][kv_head], COLIBRI_HEAD_DIM);
#else
        colibri_kernels.axpy(head, z[t], &state->v[layer][t][at], COLIBRI_HEAD_DIM);
#endif
    }
    for (uint32_t d = 0; d < COLIBRI_HEAD_DIM; d++) {
        head[d] = colibri_snap(head[d]);
    }
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
