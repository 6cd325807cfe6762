/* SPDX-License-Identifier: Apache-2.0 */
/* Latent attention with absorbed up-projections (docs/NUMERICS.md, section 7.5). What it shares with grouped-query attention, the
 * projections and the attention itself, is there.
 */
#include "internal.h"

#if COLIBRI_HAS_LATENT

/* For each head: n rows of a matrix that multiply its own n_in elements. Rows begin to end - 1 of all; `buffer` holds one head's. */
typedef struct colibri_by_head {
    uint32_t matrix;
    uint32_t n_rows;
    const uint8_t *weights;
    const float *in;
    uint32_t n_in;
    uint32_t in_stride;
    uint32_t out_stride;
    float *out;
    float *buffer;
} colibri_by_head_t;

static void project_by_head(colibri_state_t *state, const colibri_by_head_t *by_head, uint32_t begin, uint32_t end)
{
    const float *in = by_head->in;
    float *out = by_head->out; /* such that row r of the matrix is out[r] */
    for (uint32_t first = 0; first < end; first += by_head->n_rows) {
        const uint32_t last = first + by_head->n_rows;
        if (last > begin) {
            const uint32_t row = first > begin ? first : begin;
            if (row == first) {
                colibri_copy_padded(by_head->buffer, in, by_head->n_in);
            }
            colibri_matvec(state, out, &colibri_matrices[by_head->matrix], by_head->weights, by_head->buffer, row == first, row,
                           last < end ? last : end);
        }
        in += by_head->in_stride;
        out += by_head->out_stride - by_head->n_rows;
    }
}

#if COLIBRI_HAS_Q_RANK
colibri_status colibri_latent_q_a(const colibri_call_t *call)
{
    float *c = call->state->scratch + COLIBRI_SCRATCH_Q_A;
    const uint32_t kind = colibri_kind_of(call->state);
    const uint32_t n = COLIBRI_KIND_Q_RANK(kind);
    if (colibri_check_range(c, n) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
    colibri_norm(c, c, n, COLIBRI_KIND_LATENT_NORM(kind),
                 colibri_floats_at(colibri_layer_bytes(call) + COLIBRI_KIND_ATTN_Q_A_NORM_AT(kind)));
    memset(c + n, 0, (COLIBRI_PAD8(n) - n) * sizeof(float));
    return colibri_check_range(c, n);
}
#endif

colibri_status colibri_latent_rope(const colibri_call_t *call)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t n_heads = COLIBRI_KIND_N_HEADS(kind);
    const uint32_t q_dim = COLIBRI_KIND_NOPE_DIM(kind) + COLIBRI_KIND_ROPE_DIM(kind);
    const uint32_t rank = COLIBRI_KIND_KV_RANK(kind);
    float *q = state->scratch + COLIBRI_SCRATCH_LATENT_Q;
    float *latent = state->scratch + COLIBRI_SCRATCH_LATENT;
    colibri_norm(latent, latent, rank, COLIBRI_KIND_LATENT_NORM(kind),
                 colibri_floats_at(colibri_layer_bytes(call) + COLIBRI_KIND_ATTN_KV_A_NORM_AT(kind)));
    colibri_rope(state, kind, q + COLIBRI_KIND_NOPE_DIM(kind), n_heads, q_dim);
    colibri_rope(state, kind, latent + rank, 1, 0);
    return colibri_check_range(q, n_heads * q_dim);
}

void colibri_latent_k_up(const colibri_call_t *call, uint32_t begin, uint32_t end)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const colibri_by_head_t by_head = {
        .matrix = COLIBRI_KIND_ATTN_K_UP_MATRIX(kind),
        .n_rows = COLIBRI_KIND_KV_RANK(kind),
        .weights = colibri_layer_bytes(call) + COLIBRI_KIND_ATTN_K_UP_AT(kind),
        .in = state->scratch + COLIBRI_SCRATCH_LATENT_Q,
        .n_in = COLIBRI_KIND_NOPE_DIM(kind),
        .in_stride = COLIBRI_KIND_NOPE_DIM(kind) + COLIBRI_KIND_ROPE_DIM(kind),
        .out_stride = COLIBRI_KIND_HEAD_DIM(kind),
        .out = state->q,
        .buffer = state->scratch + COLIBRI_SCRATCH_NOPE,
    };
    project_by_head(state, &by_head, begin, end);
}

colibri_status colibri_latent_append(const colibri_call_t *call)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t n_heads = COLIBRI_KIND_N_HEADS(kind);
    const uint32_t head_dim = COLIBRI_KIND_HEAD_DIM(kind);
    const uint32_t rope_dim = COLIBRI_KIND_ROPE_DIM(kind);
    const float *rotated = state->scratch + COLIBRI_SCRATCH_LATENT_Q + COLIBRI_KIND_NOPE_DIM(kind);
    const float *key = state->scratch + COLIBRI_SCRATCH_LATENT;
    for (uint32_t head = 0; head < n_heads; head++) {
        memcpy(state->q + head * head_dim + COLIBRI_KIND_KV_RANK(kind), rotated, rope_dim * sizeof(float));
        rotated += COLIBRI_KIND_NOPE_DIM(kind) + rope_dim;
    }
    colibri_kernels.scale(state->q, COLIBRI_KIND_SCALE(kind), n_heads * head_dim);
    if (colibri_check_range(state->q, n_heads * head_dim) != COLIBRI_OK || colibri_check_cached(key, head_dim) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
    colibri_cache_append(state, kind, key, NULL);
    return COLIBRI_OK;
}

void colibri_latent_v_up(const colibri_call_t *call, uint32_t begin, uint32_t end)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const colibri_by_head_t by_head = {
        .matrix = COLIBRI_KIND_ATTN_V_UP_MATRIX(kind),
        .n_rows = COLIBRI_KIND_UP_DIM(kind),
        .weights = colibri_layer_bytes(call) + COLIBRI_KIND_ATTN_V_UP_AT(kind),
        .in = state->q,
        .n_in = COLIBRI_KIND_KV_RANK(kind),
        .in_stride = COLIBRI_KIND_KV_RANK(kind),
        .out_stride = COLIBRI_KIND_UP_DIM(kind),
        .out = state->scratch + COLIBRI_SCRATCH_V_UP,
        .buffer = state->scratch,
    };
    project_by_head(state, &by_head, begin, end);
}

colibri_status colibri_latent_output(colibri_state_t *state)
{
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t n = COLIBRI_KIND_N_HEADS(kind) * COLIBRI_KIND_UP_DIM(kind);
    colibri_copy_padded(state->q, state->scratch + COLIBRI_SCRATCH_V_UP, n);
    return colibri_check_range(state->q, n);
}

#endif
