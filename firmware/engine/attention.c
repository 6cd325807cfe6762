/* SPDX-License-Identifier: Apache-2.0 */
/* One query head at a time: its scores in the scratch, its output in place of the queries that are done. */
#include "internal.h"

#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT

/* n mod divisor, bit by bit: a division is a library call on some cores. */
static uint32_t remainder_of(uint32_t n, uint32_t divisor)
{
    uint32_t rest = 0;
    for (uint32_t bit = 32; bit-- > 0;) {
        rest = rest << 1 | (n >> bit & 1u);
        rest -= divisor & ~colibri_mask_below(rest, divisor);
    }
    return rest;
}

uint32_t colibri_attention_begin(uint32_t kind, uint32_t position)
{
    const uint32_t window = COLIBRI_KIND_WINDOW(kind);
    const uint32_t chunk = COLIBRI_KIND_CHUNK(kind);
    if (window != 0) {
        return position >= window ? position - window + 1u : 0u;
    }
    return chunk != 0 ? position - remainder_of(position, chunk) : 0u;
}

#if COLIBRI_HAS_RELATIVE_BIAS
/* Of one head, from position 0 on: a table rises with the distance, which begins at 1 - span. */
static const float *relative_bias(const colibri_call_t *call, uint32_t kind, uint32_t head)
{
    const float *biases = colibri_floats_at(call->model->image + COLIBRI_KIND_RELATIVE_BIAS_AT(kind));
    uint32_t span = COLIBRI_MAX_SEQ;
#if COLIBRI_HAS_ENCODER
    if (COLIBRI_KIND_OVER(kind) == COLIBRI_OVER_SOURCE) {
        span = COLIBRI_MAX_SOURCE;
    }
#endif
    return biases + (size_t)head * COLIBRI_KIND_RELATIVE_BIAS_STRIDE(kind) + (span - 1 - colibri_token(call->state));
}
#endif

static void attend(const colibri_call_t *call, uint32_t head, uint32_t kv_head)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t begin = colibri_attention_begin(kind, state->header.position);
    const colibri_kv_rows_t keys = colibri_cached_keys(state, kind, kv_head, begin);
    const colibri_kv_rows_t values = colibri_cached_values(state, kind, kv_head, begin);
    float *z = state->scratch + COLIBRI_SCRATCH_SCORES;
    uint32_t n_scores = keys.n_rows;

    colibri_kernels.scores(z, state->q + head * COLIBRI_KIND_HEAD_DIM(kind), &keys);
#if COLIBRI_HAS_RELATIVE_BIAS
    if (COLIBRI_KIND_RELATIVE_BIAS_AT(kind) != 0) {
        colibri_kernels.add(z, relative_bias(call, kind, head), n_scores);
    }
#endif
#if COLIBRI_HAS_SINKS
    if (COLIBRI_KIND_ATTN_SINKS_AT(kind) != 0) { /* one score more, which no value belongs to */
        z[n_scores++] = colibri_floats_at(colibri_layer_bytes(call) + COLIBRI_KIND_ATTN_SINKS_AT(kind))[head];
    }
#endif
    colibri_kernels.softmax(z, n_scores);
    colibri_kernels.mix(state->q + head * COLIBRI_KIND_VALUE_DIM(kind), z, &values);
}

void colibri_attention(const colibri_call_t *call, uint32_t head_begin, uint32_t head_end)
{
    /* Not h / heads_per_kv: a division is a library call on some cores. */
    const uint32_t kind = colibri_kind_of(call->state);
    const uint32_t tiled = COLIBRI_KIND_IS_TILED(kind);
    const uint32_t n_outer = tiled ? COLIBRI_KIND_HEADS_PER_KV(kind) : COLIBRI_KIND_N_KV_HEADS(kind);
    const uint32_t n_inner = tiled ? COLIBRI_KIND_N_KV_HEADS(kind) : COLIBRI_KIND_HEADS_PER_KV(kind);
    uint32_t head = 0;
    for (uint32_t outer = 0; outer < n_outer; outer++) {
        for (uint32_t inner = 0; inner < n_inner; inner++, head++) {
            if (head >= head_begin && head < head_end) {
                attend(call, head, tiled ? inner : outer);
            }
        }
    }
}

#endif
