/* SPDX-License-Identifier: Apache-2.0 */
/* Queries, keys and values from their projections to what meets in the scores (docs/NUMERICS.md, section 7.3, 2 to 7). */
#include "functions.h"
#include "internal.h"

#if COLIBRI_HAS_ATTENTION

#if COLIBRI_HAS_CLIP
static void clip(float *x, uint32_t n, float limit)
{
    for (uint32_t i = 0; i < n; i++) {
        x[i] = colibri_clip(x[i], limit);
    }
}
#endif

#if COLIBRI_HAS_QK_NORM
static colibri_status norm_heads(float *x, uint32_t n_heads, uint32_t head_dim, uint32_t norm, const float *parameters)
{
    if (colibri_check_range(x, n_heads * head_dim) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
    for (uint32_t head = 0; head < n_heads; head++) {
        colibri_norm(x + head * head_dim, x + head * head_dim, head_dim, norm, parameters);
    }
    return COLIBRI_OK;
}

/* Where `over` is what the layer's norm of queries and keys is over. A vector is one large head. */
static colibri_status norm_queries_and_keys(const colibri_call_t *call, uint32_t over)
{
    const uint32_t kind = colibri_kind_of(call->state);
    if (COLIBRI_KIND_QK_OVER(kind) != over) {
        return COLIBRI_OK;
    }
    const uint8_t *layer = colibri_layer_bytes(call);
    const uint32_t norm = COLIBRI_KIND_QK_NORM(kind);
    uint32_t n_heads = COLIBRI_KIND_N_HEADS(kind);
    uint32_t n_kv_heads = COLIBRI_KIND_N_KV_HEADS(kind);
    uint32_t q_dim = COLIBRI_KIND_HEAD_DIM(kind);
    uint32_t k_dim = q_dim;
    if (over == COLIBRI_QK_VECTOR) {
        q_dim *= n_heads;
        k_dim *= n_kv_heads;
        n_heads = n_kv_heads = 1;
    }
    colibri_status status =
        norm_heads(call->state->q, n_heads, q_dim, norm, colibri_floats_at(layer + COLIBRI_KIND_ATTN_Q_NORM_AT(kind)));
    if (status != COLIBRI_OK) {
        return status;
    }
    return norm_heads(call->state->scratch + COLIBRI_SCRATCH_K, n_kv_heads, k_dim, norm,
                      colibri_floats_at(layer + COLIBRI_KIND_ATTN_K_NORM_AT(kind)));
}
#endif

#if COLIBRI_HAS_TEMPERATURE
/* t[(position + 1) div interval]. */
static float temperature(const colibri_call_t *call, uint32_t kind)
{
    const float *t = colibri_floats_at(call->model->image + COLIBRI_KIND_TEMPERATURE_AT(kind));
    uint32_t n = call->state->header.position + 1;
    while (n >= COLIBRI_KIND_TEMPERATURE_INTERVAL(kind)) { /* no division, see attention.c */
        n -= COLIBRI_KIND_TEMPERATURE_INTERVAL(kind);
        t++;
    }
    return *t;
}
#endif

#if COLIBRI_HAS_ENCODER
static colibri_status append(colibri_state_t *state, uint32_t kind, const float *k, const float *v)
{
    const uint32_t n_kv = COLIBRI_KIND_N_KV_HEADS(kind) * COLIBRI_KIND_HEAD_DIM(kind);
    if (colibri_check_cached(k, n_kv) != COLIBRI_OK || colibri_check_cached(v, n_kv) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
    colibri_cache_append(state, kind, k, v);
    return COLIBRI_OK;
}
#endif

colibri_status colibri_place_heads(const colibri_call_t *call)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t head_dim = COLIBRI_KIND_HEAD_DIM(kind);
    const uint32_t n_q = COLIBRI_KIND_N_HEADS(kind) * head_dim;
    const uint32_t n_kv = COLIBRI_KIND_N_KV_HEADS(kind) * head_dim;
    float *q = state->q;
    float *k = state->scratch + COLIBRI_SCRATCH_K;
    float *v = state->scratch + COLIBRI_SCRATCH_V;

#if COLIBRI_HAS_ENCODER
    if (colibri_only_keys(state)) {
        return append(state, kind, k, v);
    }
    if (COLIBRI_KIND_OVER(kind) != COLIBRI_OVER_PAST) {
        colibri_kernels.scale(q, COLIBRI_KIND_SCALE(kind), n_q);
        return colibri_check_range(q, n_q);
    }
#endif
#if COLIBRI_HAS_QK_NORM
    if (norm_queries_and_keys(call, COLIBRI_QK_VECTOR) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
#endif
#if COLIBRI_HAS_CLIP
    if (COLIBRI_KIND_IS_CLIPPED(kind)) {
        clip(q, n_q, COLIBRI_KIND_CLIP(kind));
        clip(k, n_kv, COLIBRI_KIND_CLIP(kind));
        clip(v, n_kv, COLIBRI_KIND_CLIP(kind));
    }
#endif
#if COLIBRI_HAS_QK_NORM
    if (norm_queries_and_keys(call, COLIBRI_QK_HEAD) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
#endif
    colibri_rope(state, kind, q, COLIBRI_KIND_N_HEADS(kind), head_dim);
    colibri_rope(state, kind, k, COLIBRI_KIND_N_KV_HEADS(kind), head_dim);
#if COLIBRI_HAS_QK_NORM
    if (norm_queries_and_keys(call, COLIBRI_QK_HEAD_AFTER) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
#endif
    colibri_kernels.scale(q, COLIBRI_KIND_SCALE(kind), n_q);
#if COLIBRI_HAS_TEMPERATURE
    if (COLIBRI_KIND_TEMPERATURE_AT(kind) != 0) {
        colibri_kernels.scale(q, temperature(call, kind), n_q);
    }
#endif
    if (colibri_check_range(q, n_q) != COLIBRI_OK || colibri_check_cached(k, n_kv) != COLIBRI_OK ||
        colibri_check_cached(v, n_kv) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
    colibri_cache_append(state, kind, k, v);
    return COLIBRI_OK;
}

#if COLIBRI_HAS_ATTN_GATE
void colibri_gate_heads(colibri_state_t *state, uint32_t kind)
{
    (void)kind;
    const float *gate = state->scratch + COLIBRI_SCRATCH_ATTN_GATE;
    for (uint32_t i = 0; i < COLIBRI_KIND_N_HEADS(kind) * COLIBRI_KIND_HEAD_DIM(kind); i++) {
        state->q[i] = colibri_snap(state->q[i] * colibri_sigmoid(gate[i]));
    }
}
#endif

#endif
