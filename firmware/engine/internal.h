/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's files share: the compiled-in tables, and one function for each operator.
 *
 * A step is a walk over stages (docs/DESIGN.md, section 3). A stage is n units of so many multiply-accumulates; its operator
 * runs units begin to end - 1, and the walk (step.c) decides how many a slice gets.
 *
 * What a model does not have is not compiled: COLIBRI_HAS_... of model_config.h. Where only some layers have it, the layer's
 * constants decide (tables.h), never the data.
 */
#ifndef COLIBRI_INTERNAL_H
#define COLIBRI_INTERNAL_H

#include "../kernels/kernels.h"
#include "colibri/colibri.h"
#include "colibri/tables.h"
#include "mem.h"

#define COLIBRI_MODEL_MAGIC 0x4d4c4f43u /* "COLM" */
#define COLIBRI_STATE_MAGIC 0x534c4f43u /* "COLS", xor the configuration's first word */

extern const uint32_t colibri_config_hash[4];
extern const colibri_matrix_t colibri_matrices[COLIBRI_N_MATRICES];

typedef struct colibri_call {
    const colibri_model_t *model;
    colibri_state_t *state;
    const int32_t *input_ids;
    float *logits;
#if COLIBRI_HAS_ENCODER
    uint32_t encodes; /* 1: input_ids are a source */
#endif
} colibri_call_t;

static inline const float *colibri_floats_at(const uint8_t *bytes)
{
    return (const float *)(const void *)bytes;
}

/* A vector that may be absent: its offset is then 0. */
static inline const float *colibri_vector_at(const uint8_t *bytes, size_t offset)
{
    return offset != 0 ? colibri_floats_at(bytes + offset) : NULL;
}

/* The tensors of the present layer in the dense part. */
static inline const uint8_t *colibri_layer_bytes(const colibri_call_t *call)
{
    return call->model->image + COLIBRI_LAYER_AT(call->state->header.layer);
}

/* The index of the present token, in the sequence or in the source. */
static inline uint32_t colibri_token(const colibri_state_t *state)
{
#if COLIBRI_HAS_ENCODER
    if (state->header.pass != COLIBRI_PASS_STEP) {
        return state->header.done;
    }
#endif
    return state->header.position;
}

/* The end of the positions that attention of the present layer sees. */
static inline uint32_t colibri_seen_end(const colibri_state_t *state, uint32_t kind)
{
    (void)kind;
#if COLIBRI_HAS_ENCODER
    if (COLIBRI_KIND_OVER(kind) != COLIBRI_OVER_PAST) {
        return COLIBRI_KIND_OVER(kind) == COLIBRI_OVER_SOURCE ? state->header.seq_len : state->header.source_len;
    }
#endif
    return state->header.position + 1;
}

#if COLIBRI_HAS_ENCODER
/* Whether the present pass computes keys and values, and nothing else of a mixer. */
static inline uint32_t colibri_only_keys(const colibri_state_t *state)
{
    return state->header.pass == COLIBRI_PASS_KEYS || state->header.pass == COLIBRI_PASS_CROSS;
}
#endif

/* n elements, then zeros to a multiple of 8: what multiplies a matrix. */
static inline void colibri_copy_padded(float *to, const float *from, uint32_t n)
{
    memcpy(to, from, n * sizeof(float));
    memset(to + n, 0, (COLIBRI_PAD8(n) - n) * sizeof(float));
}

static inline float colibri_max(float a, float b)
{
    return colibri_from_bits(colibri_select(colibri_mask_below_u32(colibri_order_key(a), colibri_order_key(b)), colibri_bits(b),
                                            colibri_bits(a)));
}

/* value, or limit with its sign where it is beyond. MUST: limit > 0. */
static inline float colibri_clip(float value, float limit)
{
    uint32_t magnitude = colibri_magnitude(value);
    uint32_t bound = colibri_bits(limit);
    return colibri_from_bits(colibri_select(colibri_mask_below(magnitude, bound), magnitude, bound) |
                             (colibri_bits(value) & 0x80000000u));
}

/* ---- Operators ---- */

/* COLIBRI_OK, or COLIBRI_ERR_RANGE where an element of x is 2**50 or more, or not finite. */
colibri_status colibri_check_range(const float *x, uint32_t n);

void colibri_embed(const colibri_model_t *model, colibri_state_t *state, int32_t id);
/* `norm` is an index of the table of norms; its weights, then its bias, are at `parameters`. ALIAS: out may be x. */
void colibri_norm(float *out, const float *x, uint32_t n, uint32_t norm, const float *parameters);

/* out[r] = (W x)[r] for rows begin to end - 1; where `fresh`, x is quantised first if W is of an integer format: with the first
 * row, unless another matrix of the same format did that. ALIAS: x has pad8(cols) elements. */
void colibri_matvec(colibri_state_t *state, float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const float *x,
                    uint32_t fresh, uint32_t begin, uint32_t end);

#if COLIBRI_HAS_BIAS
/* out[r] = snap(out[r] + bias[r]) for rows begin to end - 1. NULL: nothing. */
void colibri_add_bias(float *out, const float *bias, uint32_t begin, uint32_t end);
#endif

/* Cosine and sine of every rotary pair at the present position. */
void colibri_rope_prepare(const colibri_model_t *model, colibri_state_t *state);
/* Rotate n_heads heads, `stride` elements apart, as the kind of layer says. */
void colibri_rope(const colibri_state_t *state, uint32_t kind, float *heads, uint32_t n_heads, uint32_t stride);

/* ---- Mixers ---- */

#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
/* The first position that attention at `position` sees. */
uint32_t colibri_attention_begin(uint32_t kind, uint32_t position);
/* The present position's keys of all KV heads into the cache, and the values; the rows of a KV head from position `begin` on. */
void colibri_cache_append(colibri_state_t *state, uint32_t kind, const float *k, const float *v);
/* As colibri_check_range, for what the cache must hold. */
colibri_status colibri_check_cached(const float *x, uint32_t n);
colibri_kv_rows_t colibri_cached_keys(const colibri_state_t *state, uint32_t kind, uint32_t kv_head, uint32_t begin);
colibri_kv_rows_t colibri_cached_values(const colibri_state_t *state, uint32_t kind, uint32_t kv_head, uint32_t begin);
void colibri_attention(const colibri_call_t *call, uint32_t head_begin, uint32_t head_end);
#endif
#if COLIBRI_HAS_ATTENTION
/* From the projections to what meets in the scores: norms, clip, RoPE, scale; k and v into the cache. */
colibri_status colibri_place_heads(const colibri_call_t *call);
#endif
#if COLIBRI_HAS_ATTN_GATE
void colibri_gate_heads(colibri_state_t *state, uint32_t kind);
#endif
#if COLIBRI_HAS_MIXTURE
/* The weights of the present slot's expert. */
const uint8_t *colibri_attention_expert(const colibri_call_t *call);
/* Add the present slot's output to the sum; after the last slot the sum stands where every mixer's output does. */
void colibri_combine_attention(const colibri_call_t *call);
#endif
#if COLIBRI_HAS_Q_RANK
colibri_status colibri_latent_q_a(const colibri_call_t *call);
#endif
#if COLIBRI_HAS_LATENT
colibri_status colibri_latent_rope(const colibri_call_t *call);
void colibri_latent_k_up(const colibri_call_t *call, uint32_t begin, uint32_t end);
colibri_status colibri_latent_append(const colibri_call_t *call);
void colibri_latent_v_up(const colibri_call_t *call, uint32_t begin, uint32_t end);
colibri_status colibri_latent_output(colibri_state_t *state);
#endif
#if COLIBRI_HAS_CONVOLUTION
colibri_status colibri_convolve(const colibri_call_t *call);
#endif

/* ---- Routers ---- */

#if COLIBRI_MAX_EXPERTS > 0
/* A router and its tensors; NULL: it has none. */
typedef struct colibri_gate {
    uint32_t router; /* index in the table of routers */
    const float *weights;
    const float *hidden; /* of a two-layer gate; of a hierarchy the primary gate */
    const float *bias;
    const float *correction;
} colibri_gate_t;

#if COLIBRI_NEEDS_FIRST_GATE
void colibri_router_hidden(colibri_state_t *state, const colibri_gate_t *gate, uint32_t begin, uint32_t end);
#endif
void colibri_router_logits(colibri_state_t *state, const colibri_gate_t *gate, uint32_t begin, uint32_t end);
/* Choose the experts: ids and weights (top_k) from logits (n_experts); COLIBRI_NO_EXPERT and 0 behind the last that runs. A device
 * may take this function's place.
 * ALIAS: scratch is the state's. */
void colibri_route(int32_t *ids, float *weights, const float *logits, const colibri_gate_t *gate, float *scratch);
/* The k largest of n values and their indices, in descending order, ties to the lower index. */
void colibri_top_k(int32_t *ids, float *chosen, const float *values, uint32_t n, uint32_t k);
#if COLIBRI_HAS_GROUPS
/* Put the selection values of all groups but the best out of the running. ALIAS: of_groups has n_experts elements. */
void colibri_limit_groups(float *choice, uint32_t router, float *of_groups);
#endif
#if COLIBRI_HAS_ROUTER_WEIGHTS
/* The scores of the chosen to weights, in place. */
void colibri_weigh(float *weights, uint32_t router);
#endif
#if COLIBRI_HAS_CAPACITY
/* Count the present token for its expert; its weight becomes +0.0 where that has as many already as it takes. */
void colibri_limit_to_capacity(colibri_state_t *state, uint32_t router);
#endif
#if COLIBRI_HAS_TOP_P
/* Of chosen experts (top_k) leave the first whose scores sum to the router's top_p. */
void colibri_shortest_prefix(int32_t *ids, float *scores, uint32_t router);
#endif
#if COLIBRI_HAS_HIERARCHY
/* MUST: the primary gate's logits are in scratch. ALIAS: scratch is the state's. */
void colibri_route_by_hierarchy(int32_t *ids, float *weights, const float *logits, uint32_t router, float *scratch);
#endif
#if COLIBRI_HAS_SPARSEMIXER
void colibri_sparsemixer(int32_t *ids, float *weights, const float *logits, uint32_t router);
#endif
#endif

/* ---- Feed-forward blocks ---- */

/* One block's weights. colibri_block is the only place that computes their address. */
typedef struct colibri_block {
    const uint8_t *bytes;
    uint32_t shape; /* index in the table of shapes */
} colibri_block_t;

/* The block of the present slot. */
colibri_block_t colibri_block(const colibri_call_t *call);
#if COLIBRI_HAS_SIDE_INPUT
/* Weigh the present slot's input, where its router says so. */
colibri_status colibri_weigh_input(colibri_state_t *state);
#endif
/* What the present slot's block multiplies. */
const float *colibri_block_input(const colibri_state_t *state);
/* h from gate and up. */
colibri_status colibri_activate(const colibri_call_t *call);
/* Add the weighted output of the present slot's block to the sum. */
void colibri_combine(const colibri_call_t *call);

/* ---- Slices ---- */

/* Everything a caller or a stray write may get wrong. */
colibri_status colibri_check_model(const colibri_model_t *model);
colibri_status colibri_check_state(const colibri_state_t *state);
/* Writes *ids_hash only. */
colibri_status colibri_check_call(const colibri_call_t *call, int32_t seq_len, uint32_t *ids_hash);

#if COLIBRI_HAS_ENCODER
/* The residual stream of the present token: from `source` to x, and back. */
void colibri_encode_load(colibri_state_t *state);
void colibri_encode_store(colibri_state_t *state);
/* The first stage of a source. */
void colibri_encode_begin(colibri_state_t *state);
/* Whether the present stage is the last of a token in its pass. */
uint32_t colibri_encode_ends(const colibri_state_t *state);
/* To the next token of the pass, or the next pass; 1 where the source is encoded. */
uint32_t colibri_encode_next(colibri_state_t *state);
/* Whether pass, layer and stage of a pending call go together. */
uint32_t colibri_encode_holds(const colibri_state_t *state);
#endif

/* What the present stage consists of; no units where the layer does not have it. */
typedef struct colibri_stage_size {
    uint32_t n_units;
    uint32_t macs_per_unit;
} colibri_stage_size_t;

colibri_stage_size_t colibri_stage_size(const colibri_state_t *state);
/* How often the present stage runs, one slot after the other. */
uint32_t colibri_stage_slots(const colibri_state_t *state);
/* Run units of the present stage; after the last, `last` is 1: also check and combine what is complete. */
colibri_status colibri_stage_run(const colibri_call_t *call, uint32_t begin, uint32_t end, uint32_t last);

/* CRC-32 (IEEE, as zlib) of bytes, continued from crc (0 at the start). */
uint32_t colibri_crc32(uint32_t crc, const uint8_t *bytes, size_t n_bytes);

#endif
