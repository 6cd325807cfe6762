/* SPDX-License-Identifier: Apache-2.0 */
/* What the units of each stage do. Range checks stand where docs/NUMERICS.md, section 7, says "checked". */
#include "internal.h"

/* A matrix in the image, and its bias, or NULL. */
typedef struct colibri_projection {
    uint32_t matrix;
    const uint8_t *weights;
    const float *bias;
} colibri_projection_t;

/* Of the table KIND or SHAPE. */
#define PROJECTION(base, TABLE, NAME, index)                            \
    {                                                                   \
        COLIBRI_##TABLE##_##NAME##_MATRIX(index),                       \
        (base) + COLIBRI_##TABLE##_##NAME##_AT(index),                  \
        colibri_vector_at(base, COLIBRI_##TABLE##_##NAME##_BIAS_AT(index)), \
    }

static void project(colibri_state_t *state, float *out, const colibri_projection_t *projection, const float *x, uint32_t fresh,
                    uint32_t begin, uint32_t end)
{
    colibri_matvec(state, out, &colibri_matrices[projection->matrix], projection->weights, x, fresh && begin == 0, begin, end);
#if COLIBRI_HAS_BIAS
    colibri_add_bias(out, projection->bias, begin, end);
#endif
}

/* Of the residual stream. `norm` is 0 where the layer has none, else its index plus 1. */
static colibri_status pre_norm(colibri_state_t *state, uint32_t norm, const uint8_t *parameters)
{
    if (norm != 0) {
        colibri_norm(state->norm, state->x, COLIBRI_HIDDEN_SIZE, norm - 1, colibri_floats_at(parameters));
    } else {
        memcpy(state->norm, state->x, COLIBRI_HIDDEN_SIZE * sizeof(float));
    }
    return colibri_check_range(state->norm, COLIBRI_HIDDEN_SIZE);
}

#if COLIBRI_HAS_ATTN_POST_NORM || COLIBRI_HAS_FFN_POST_NORM
static colibri_status post_norm(float *y, uint32_t norm, const uint8_t *parameters)
{
    if (colibri_check_range(y, COLIBRI_HIDDEN_SIZE) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
    colibri_norm(y, y, COLIBRI_HIDDEN_SIZE, norm - 1, colibri_floats_at(parameters));
    return colibri_check_range(y, COLIBRI_HIDDEN_SIZE);
}
#endif

static colibri_status residual(colibri_state_t *state, const float *y)
{
#if COLIBRI_HAS_RESIDUAL_FACTOR
    colibri_kernels.axpy(state->x, COLIBRI_KIND_RESIDUAL(colibri_kind_of(state)), y, COLIBRI_HIDDEN_SIZE);
    colibri_kernels.scale(state->x, 1.0f, COLIBRI_HIDDEN_SIZE); /* snap */
#else
    colibri_kernels.add(state->x, y, COLIBRI_HIDDEN_SIZE);
#endif
    return colibri_check_range(state->x, COLIBRI_HIDDEN_SIZE);
}

#if COLIBRI_MAX_EXPERTS > 0
/* The present layer's router: ROUTER, of its feed-forward, or ATTN_ROUTER. */
#define GATE(base, kind, NAME)                                           \
    {                                                                    \
        COLIBRI_KIND_##NAME(kind),                                       \
        colibri_floats_at((base) + COLIBRI_KIND_##NAME##_AT(kind)),      \
        colibri_vector_at(base, COLIBRI_KIND_##NAME##_HIDDEN_AT(kind)),  \
        colibri_vector_at(base, COLIBRI_KIND_##NAME##_BIAS_AT(kind)),    \
        colibri_vector_at(base, COLIBRI_KIND_##NAME##_CORRECTION_AT(kind)), \
    }

static void route(colibri_state_t *state, const colibri_gate_t *gate, uint32_t begin, uint32_t end, uint32_t last)
{
    colibri_router_logits(state, gate, begin, end);
    if (last) {
        colibri_route(state->expert_ids, state->expert_weights, state->router, gate, state->scratch);
#if COLIBRI_HAS_CAPACITY
        colibri_limit_to_capacity(state, gate->router);
#endif
    }
}
#endif

#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
/* What the output projection reads: n elements of q, the rest of the last eight zero (they held the experts' sum). */
static colibri_status complete_heads(colibri_state_t *state, uint32_t n)
{
    memset(state->q + n, 0, (COLIBRI_PAD8(n) - n) * sizeof(float));
    return colibri_check_range(state->q, n);
}
#endif

/* A stage of the mixer, but its output projection. */
static colibri_status run_mixer(const colibri_call_t *call, uint32_t begin, uint32_t end, uint32_t last)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const uint8_t *layer = colibri_layer_bytes(call);
    float *scratch = state->scratch;
    (void)kind;
    (void)layer;
    (void)scratch;

    switch (state->header.stage) {
#if COLIBRI_HAS_MIXTURE
#if COLIBRI_NEEDS_FIRST_GATE
    case COLIBRI_STAGE_ATTN_ROUTER_HIDDEN: {
        const colibri_gate_t gate = GATE(layer, kind, ATTN_ROUTER);
        colibri_router_hidden(state, &gate, begin, end);
        return COLIBRI_OK;
    }
#endif
    case COLIBRI_STAGE_ATTN_ROUTER: {
        const colibri_gate_t gate = GATE(layer, kind, ATTN_ROUTER);
        route(state, &gate, begin, end, last);
        return COLIBRI_OK;
    }
#endif
#if COLIBRI_HAS_Q_RANK
    case COLIBRI_STAGE_Q_A: {
        const colibri_projection_t q_a = PROJECTION(layer, KIND, ATTN_Q_A, kind);
        project(state, scratch + COLIBRI_SCRATCH_Q_A, &q_a, state->norm, 1, begin, end);
        return last ? colibri_latent_q_a(call) : COLIBRI_OK;
    }
#endif
#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
    case COLIBRI_STAGE_Q: {
        const float *x = state->norm;
        float *out = state->q;
        const uint8_t *base = layer;
        uint32_t fresh = 1;
#if COLIBRI_HAS_MIXTURE
        if (COLIBRI_KIND_ATTN_TOP_K(kind) != 0) {
            out += state->header.slot * colibri_matrices[COLIBRI_KIND_ATTN_Q_MATRIX(kind)].rows;
            base = colibri_attention_expert(call);
            fresh = state->header.slot == 0;
        }
#endif
#if COLIBRI_HAS_LATENT
        if (COLIBRI_KIND_MIXER(kind) == COLIBRI_MIXER_LATENT) {
            x = COLIBRI_KIND_Q_RANK(kind) != 0 ? scratch + COLIBRI_SCRATCH_Q_A : x;
            out = scratch + COLIBRI_SCRATCH_LATENT_Q;
        }
#endif
        const colibri_projection_t q = PROJECTION(base, KIND, ATTN_Q, kind);
        project(state, out, &q, x, fresh, begin, end);
        return COLIBRI_OK;
    }
    case COLIBRI_STAGE_K: {
        float *out = scratch + COLIBRI_SCRATCH_K;
        const colibri_projection_t k = PROJECTION(layer, KIND, ATTN_K, kind);
        uint32_t fresh = 0;
#if COLIBRI_HAS_ENCODER
        fresh = colibri_only_keys(state);
#endif
#if COLIBRI_HAS_LATENT
        if (COLIBRI_KIND_MIXER(kind) == COLIBRI_MIXER_LATENT) {
            out = scratch + COLIBRI_SCRATCH_LATENT;
            fresh = COLIBRI_KIND_Q_RANK(kind) != 0;
        }
#endif
        project(state, out, &k, state->norm, fresh, begin, end);
#if COLIBRI_HAS_LATENT
        if (COLIBRI_KIND_MIXER(kind) == COLIBRI_MIXER_LATENT && last) {
            return colibri_check_range(out, COLIBRI_KIND_HEAD_DIM(kind));
        }
#endif
        return COLIBRI_OK;
    }
    case COLIBRI_STAGE_ROPE:
#if COLIBRI_HAS_LATENT
#if COLIBRI_HAS_ATTENTION
        if (COLIBRI_KIND_MIXER(kind) == COLIBRI_MIXER_LATENT)
#endif
        {
            return colibri_latent_rope(call);
        }
#endif
#if COLIBRI_HAS_ATTENTION
        return colibri_place_heads(call);
#endif
    case COLIBRI_STAGE_ATTENTION:
        colibri_attention(call, begin, end);
        return last ? complete_heads(state, COLIBRI_KIND_N_HEADS(kind) * COLIBRI_KIND_VALUE_DIM(kind)) : COLIBRI_OK;
#endif
#if COLIBRI_HAS_ATTENTION
    case COLIBRI_STAGE_V: {
        const colibri_projection_t v = PROJECTION(layer, KIND, ATTN_V, kind);
        project(state, scratch + COLIBRI_SCRATCH_V, &v, state->norm, 0, begin, end);
        return COLIBRI_OK;
    }
#endif
#if COLIBRI_HAS_LATENT
    case COLIBRI_STAGE_K_UP:
        colibri_latent_k_up(call, begin, end);
        return last ? colibri_latent_append(call) : COLIBRI_OK;
    case COLIBRI_STAGE_V_UP:
        colibri_latent_v_up(call, begin, end);
        return last ? colibri_latent_output(state) : COLIBRI_OK;
#endif
#if COLIBRI_HAS_ATTN_GATE
    case COLIBRI_STAGE_ATTN_GATE: {
        const colibri_projection_t gate = PROJECTION(layer, KIND, ATTN_GATE, kind);
        project(state, scratch + COLIBRI_SCRATCH_ATTN_GATE, &gate, state->norm, 1, begin, end);
        if (last) {
            colibri_gate_heads(state, kind);
        }
        return COLIBRI_OK;
    }
#endif
#if COLIBRI_HAS_CONVOLUTION
    case COLIBRI_STAGE_CONV_IN: {
        const colibri_projection_t in = PROJECTION(layer, KIND, CONV_IN, kind);
        project(state, scratch + COLIBRI_SCRATCH_CONV, &in, state->norm, 1, begin, end);
        return last ? colibri_check_range(scratch + COLIBRI_SCRATCH_CONV, 3 * COLIBRI_HIDDEN_SIZE) : COLIBRI_OK;
    }
    case COLIBRI_STAGE_CONV:
        return colibri_convolve(call);
#endif
    default:
        break;
    }
    return COLIBRI_ERR_STATE_CORRUPT;
}

static void run_output_projection(const colibri_call_t *call, uint32_t begin, uint32_t end, uint32_t last)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    float *out = state->scratch + COLIBRI_SCRATCH_OUT;
    (void)kind;
    (void)last;
#if COLIBRI_HAS_MIXTURE
    if (COLIBRI_KIND_ATTN_TOP_K(kind) != 0) {
        float *heads = state->scratch + COLIBRI_SCRATCH_HEADS;
        const colibri_matrix_t *o = &colibri_matrices[COLIBRI_KIND_ATTN_O_MATRIX(kind)];
        if (begin == 0) {
            colibri_copy_padded(heads, state->q + state->header.slot * o->cols, o->cols);
        }
        colibri_matvec(state, out, o, colibri_attention_expert(call) + COLIBRI_KIND_ATTN_O_AT(kind), heads, begin == 0, begin, end);
        if (last) {
            colibri_combine_attention(call);
        }
        return;
    }
#endif
    const colibri_projection_t o = PROJECTION(colibri_layer_bytes(call), KIND, ATTN_O, kind);
    project(state, out, &o, state->q, 1, begin, end);
}

/* A stage of a feed-forward block. */
static colibri_status run_block(const colibri_call_t *call, uint32_t begin, uint32_t end, uint32_t last)
{
    colibri_state_t *state = call->state;
    float *scratch = state->scratch;
    const colibri_block_t block = colibri_block(call);
    const float *x = colibri_block_input(state);
#if COLIBRI_HAS_SIDE_INPUT
    const uint32_t first_stage = COLIBRI_KIND_IS_GATED(colibri_kind_of(state)) ? (uint32_t)COLIBRI_STAGE_GATE : (uint32_t)COLIBRI_STAGE_UP;
    if (state->header.stage == first_stage && begin == 0 && colibri_weigh_input(state) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
#endif
    switch (state->header.stage) {
#if COLIBRI_HAS_GATE
    case COLIBRI_STAGE_GATE: { /* quantises its input for each block: h took its place */
        const colibri_projection_t gate = PROJECTION(block.bytes, SHAPE, GATE, block.shape);
        project(state, scratch + COLIBRI_SCRATCH_GATE, &gate, x, 1, begin, end);
        return COLIBRI_OK;
    }
#endif
    case COLIBRI_STAGE_UP: {
        const colibri_projection_t up = PROJECTION(block.bytes, SHAPE, UP, block.shape);
        project(state, scratch + COLIBRI_SCRATCH_UP, &up, x, !COLIBRI_KIND_IS_GATED(colibri_kind_of(state)), begin, end);
        return COLIBRI_OK;
    }
    case COLIBRI_STAGE_ACT:
        return colibri_activate(call);
    default: {
        const colibri_projection_t down = PROJECTION(block.bytes, SHAPE, DOWN, block.shape);
        project(state, scratch + COLIBRI_SCRATCH_OUT, &down, scratch + COLIBRI_SCRATCH_GATE, 1, begin, end);
        if (last) {
            colibri_combine(call);
        }
        return COLIBRI_OK;
    }
    }
}

/* Where the feed-forward's output stands: a dense block's is not copied into the sum. */
static float *ffn_output(colibri_state_t *state)
{
#if COLIBRI_HAS_EXPERTS
    if (COLIBRI_KIND_N_EXPERTS(colibri_kind_of(state)) != 0) {
        return state->q;
    }
#endif
    return state->scratch + COLIBRI_SCRATCH_OUT;
}

static colibri_status run_head(const colibri_call_t *call, uint32_t begin, uint32_t end, uint32_t last)
{
    const colibri_projection_t head = {COLIBRI_HEAD_MATRIX, call->model->image + (size_t)COLIBRI_HEAD_AT,
                                       colibri_vector_at(call->model->image, COLIBRI_HEAD_BIAS_AT)};
    project(call->state, call->logits, &head, call->state->norm, 1, begin, end);
    if (!last) {
        return COLIBRI_OK;
    }
#if COLIBRI_HAS_LOGITS_SCALE
    colibri_kernels.scale(call->logits, COLIBRI_LOGITS_SCALE, COLIBRI_VOCAB_SIZE);
#endif
    return colibri_check_range(call->logits, COLIBRI_VOCAB_SIZE);
}

colibri_status colibri_stage_run(const colibri_call_t *call, uint32_t begin, uint32_t end, uint32_t last)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const uint8_t *layer = colibri_layer_bytes(call);
    (void)kind;

    switch (state->header.stage) {
    case COLIBRI_STAGE_EMBED:
        colibri_rope_prepare(call->model, state);
        colibri_embed(call->model, state, call->input_ids[state->header.done]);
#if COLIBRI_HAS_ENCODER
        if (state->header.pass != COLIBRI_PASS_STEP) {
            colibri_encode_store(state);
        }
#endif
        return colibri_check_range(state->x, COLIBRI_HIDDEN_SIZE);
    case COLIBRI_STAGE_ATTN_NORM:
#if COLIBRI_HAS_ENCODER
        if (state->header.pass != COLIBRI_PASS_STEP) {
            colibri_encode_load(state);
        }
#endif
        return pre_norm(state, COLIBRI_KIND_ATTN_NORM(kind), layer + COLIBRI_KIND_ATTN_NORM_AT(kind));
    case COLIBRI_STAGE_O:
        run_output_projection(call, begin, end, last);
        return COLIBRI_OK;
#if COLIBRI_HAS_ATTN_POST_NORM
    case COLIBRI_STAGE_ATTN_POST_NORM:
        return post_norm(state->scratch + COLIBRI_SCRATCH_OUT, COLIBRI_KIND_ATTN_POST_NORM(kind),
                         layer + COLIBRI_KIND_ATTN_POST_NORM_AT(kind));
#endif
    case COLIBRI_STAGE_ATTN_RESIDUAL:
        return residual(state, state->scratch + COLIBRI_SCRATCH_OUT);
    case COLIBRI_STAGE_FFN_NORM:
        return pre_norm(state, COLIBRI_KIND_FFN_NORM(kind), layer + COLIBRI_KIND_FFN_NORM_AT(kind));
#if COLIBRI_HAS_EXPERTS
#if COLIBRI_NEEDS_FIRST_GATE
    case COLIBRI_STAGE_ROUTER_HIDDEN: {
        const colibri_gate_t gate = GATE(layer, kind, ROUTER);
        colibri_router_hidden(state, &gate, begin, end);
        return COLIBRI_OK;
    }
#endif
    case COLIBRI_STAGE_ROUTER: {
        const colibri_gate_t gate = GATE(layer, kind, ROUTER);
        route(state, &gate, begin, end, last);
        return COLIBRI_OK;
    }
#endif
#if COLIBRI_HAS_GATE
    case COLIBRI_STAGE_GATE:
#endif
    case COLIBRI_STAGE_UP:
    case COLIBRI_STAGE_ACT:
    case COLIBRI_STAGE_DOWN:
        return run_block(call, begin, end, last);
#if COLIBRI_HAS_FFN_POST_NORM
    case COLIBRI_STAGE_FFN_POST_NORM:
        return post_norm(ffn_output(state), COLIBRI_KIND_FFN_POST_NORM(kind), layer + COLIBRI_KIND_FFN_POST_NORM_AT(kind));
#endif
    case COLIBRI_STAGE_FFN_RESIDUAL:
        return residual(state, ffn_output(state));
    case COLIBRI_STAGE_FINAL_NORM:
#if COLIBRI_HAS_ENCODER
        if (state->header.pass != COLIBRI_PASS_STEP) {
            colibri_encode_load(state);
            return pre_norm(state, COLIBRI_ENCODER_NORM + 1, call->model->image + (size_t)COLIBRI_ENCODER_NORM_AT);
        }
#endif
        return pre_norm(state, 1, call->model->image + (size_t)COLIBRI_FINAL_NORM_AT);
    case COLIBRI_STAGE_HEAD:
        return run_head(call, begin, end, last);
    default:
        return run_mixer(call, begin, end, last);
    }
}
