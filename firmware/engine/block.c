/* SPDX-License-Identifier: Apache-2.0 */
/* One feed-forward block: where its weights are, what it multiplies, h, and its part of the sum (docs/NUMERICS.md, 7.7 and 7.8). */
#include "functions.h"
#include "internal.h"

colibri_block_t colibri_block(const colibri_call_t *call)
{
    const colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t index = colibri_block_of(state);
    const uint8_t *first = call->model->image + COLIBRI_LAYER_BLOCKS_AT(state->header.layer);
    size_t at;
    (void)kind;
#if COLIBRI_N_VARIANTS > 0
    if (index < COLIBRI_KIND_N_EXPERTS(kind)) {
        at = COLIBRI_VARIANT_AT(COLIBRI_KIND_FIRST_VARIANT(kind) + index);
    } else {
        at = COLIBRI_KIND_LAST_AT(kind);
    }
#elif COLIBRI_HAS_SHARED || COLIBRI_HAS_DENSE
    if (index < COLIBRI_KIND_N_EXPERTS(kind)) {
        at = (size_t)index * COLIBRI_KIND_EXPERT_STRIDE(kind);
    } else {
        at = COLIBRI_KIND_LAST_AT(kind);
    }
#else
    at = (size_t)index * COLIBRI_KIND_EXPERT_STRIDE(kind);
#endif
    colibri_block_t block = {first + at, colibri_shape_of(state, index)};
    return block;
}

#if COLIBRI_HAS_SIDE_INPUT
/* Whether the present slot is an expert whose weight acts on its input. */
static uint32_t weighs_input(const colibri_state_t *state)
{
    const uint32_t kind = colibri_kind_of(state);
    return state->header.slot < COLIBRI_KIND_TOP_K(kind) && COLIBRI_ROUTER_SIDE_INPUT(COLIBRI_KIND_ROUTER(kind));
}

colibri_status colibri_weigh_input(colibri_state_t *state)
{
    float *input = state->scratch + COLIBRI_SCRATCH_INPUT;
    if (!weighs_input(state)) {
        return COLIBRI_OK;
    }
    colibri_copy_padded(input, state->norm, COLIBRI_HIDDEN_SIZE);
    colibri_kernels.scale(input, state->expert_weights[state->header.slot], COLIBRI_HIDDEN_SIZE);
    return colibri_check_range(input, COLIBRI_HIDDEN_SIZE);
}
#endif

const float *colibri_block_input(const colibri_state_t *state)
{
#if COLIBRI_HAS_SIDE_INPUT
    if (weighs_input(state)) {
        return state->scratch + COLIBRI_SCRATCH_INPUT;
    }
#endif
    return state->norm;
}

#if COLIBRI_HAS_CLAMP
static void clamped_swiglu(float *g, const float *u, uint32_t n, float limit, float alpha)
{
    for (uint32_t i = 0; i < n; i++) {
        float gate = -colibri_max(-g[i], -limit); /* the smaller of the two */
        float up = colibri_clip(u[i], limit);
        float silu = colibri_snap(gate * colibri_sigmoid(colibri_snap(gate * alpha)));
        g[i] = colibri_snap(colibri_snap(up + 1.0f) * silu);
    }
}
#endif

#if COLIBRI_HAS_ACT_SILU || COLIBRI_HAS_ACT_GELU_TANH || COLIBRI_HAS_ACT_GELU_ERF || COLIBRI_HAS_ACT_RELU || COLIBRI_HAS_ACT_RELU2
#define HAS_PLAIN_ACTIVATION 1

#if COLIBRI_HAS_ACT_RELU || COLIBRI_HAS_ACT_RELU2
static float relu(float x)
{
    return colibri_from_bits(colibri_bits(x) & ((colibri_bits(x) >> 31) - 1u));
}
#endif

static float activation(uint32_t which, float x)
{
    switch (which) {
#if COLIBRI_HAS_ACT_GELU_TANH
    case COLIBRI_GELU_TANH: return colibri_gelu_tanh(x);
#endif
#if COLIBRI_HAS_ACT_GELU_ERF
    case COLIBRI_GELU_ERF: return colibri_gelu_erf(x);
#endif
#if COLIBRI_HAS_ACT_RELU
    case COLIBRI_RELU: return relu(x);
#endif
#if COLIBRI_HAS_ACT_RELU2
    case COLIBRI_RELU2: return colibri_snap(relu(x) * relu(x));
#endif
    default: return colibri_silu(x);
    }
}

static void plain(float *h, const float *u, uint32_t n, uint32_t which, uint32_t is_gated)
{
    for (uint32_t i = 0; i < n; i++) {
        h[i] = is_gated ? colibri_snap(activation(which, h[i]) * u[i]) : activation(which, u[i]);
    }
}
#else
#define HAS_PLAIN_ACTIVATION 0
#endif

static void activate(float *g, const float *u, uint32_t n, uint32_t kind)
{
    (void)kind;
#if COLIBRI_HAS_CLAMP
    if (COLIBRI_KIND_IS_CLAMPED(kind)) {
        clamped_swiglu(g, u, n, COLIBRI_KIND_CLAMP_LIMIT(kind), COLIBRI_KIND_CLAMP_ALPHA(kind));
        return;
    }
#endif
#if HAS_PLAIN_ACTIVATION
    if (!COLIBRI_KIND_IS_GATED(kind) || COLIBRI_KIND_ACTIVATION(kind) != COLIBRI_SILU) {
        plain(g, u, n, COLIBRI_KIND_ACTIVATION(kind), COLIBRI_KIND_IS_GATED(kind));
        return;
    }
#endif
#if COLIBRI_HAS_SWIGLU
    colibri_kernels.swiglu(g, u, n);
#endif
}

/* h over gate; its pad may hold what the scratch held before. */
colibri_status colibri_activate(const colibri_call_t *call)
{
    colibri_state_t *state = call->state;
    const uint32_t shape = colibri_shape_of(state, colibri_block_of(state));
    const uint32_t n = COLIBRI_SHAPE_WIDTH(shape);
    float *h = state->scratch + COLIBRI_SCRATCH_GATE;
    (void)shape;
    activate(h, state->scratch + COLIBRI_SCRATCH_UP, n, colibri_kind_of(state));
    memset(h + n, 0, (COLIBRI_PAD8(n) - n) * sizeof(float));
    return colibri_check_range(h, n);
}

#if COLIBRI_HAS_SHARED_MIX
/* The weights of the experts' sum and of the shared block. */
static void mix_of(float mix[2], const colibri_call_t *call)
{
    const uint32_t kind = colibri_kind_of(call->state);
    const uint8_t *layer = colibri_layer_bytes(call);
    const float *rows = colibri_floats_at(layer + COLIBRI_KIND_SHARED_MIX_AT(kind));
    (void)kind;
    mix[0] = colibri_kernels.dot(rows, call->state->norm, COLIBRI_HIDDEN_SIZE);
    mix[1] = colibri_kernels.dot(rows + COLIBRI_HIDDEN_PAD, call->state->norm, COLIBRI_HIDDEN_SIZE);
    colibri_add_bias(mix, colibri_floats_at(layer + COLIBRI_KIND_SHARED_MIX_BIAS_AT(kind)), 0, 2);
    colibri_kernels.softmax(mix, 2);
}
#endif

#if COLIBRI_HAS_EXPERTS
/* Of the present slot's output in the sum. Where the shared block comes with a mix, that of the sum acts now. */
static float weight_of(const colibri_call_t *call)
{
    const colibri_state_t *state = call->state;
    const uint32_t slot = state->header.slot;
#if COLIBRI_HAS_SHARED
    const uint32_t kind = colibri_kind_of(state);
    if (slot >= COLIBRI_KIND_TOP_K(kind)) {
#if COLIBRI_HAS_SHARED_MIX
        if (COLIBRI_KIND_SHARED_MIX_AT(kind) != 0) {
            float mix[2];
            mix_of(mix, call);
            colibri_kernels.scale(call->state->q, mix[0], COLIBRI_HIDDEN_SIZE);
            return mix[1];
        }
#endif
#if COLIBRI_HAS_SHARED_GATE
        if (COLIBRI_KIND_SHARED_GATE_AT(kind) != 0) {
            const float *gate = colibri_floats_at(colibri_layer_bytes(call) + COLIBRI_KIND_SHARED_GATE_AT(kind));
            return colibri_sigmoid(colibri_kernels.dot(gate, state->norm, COLIBRI_HIDDEN_SIZE));
        }
#endif
        return 1.0f;
    }
#endif
#if COLIBRI_HAS_SIDE_INPUT
    if (weighs_input(state)) {
        return 1.0f;
    }
#endif
    return state->expert_weights[slot];
}
#endif

/* The sum stands in q, which is free by then. A dense block's output is not copied there. A weight of 1 adds. */
void colibri_combine(const colibri_call_t *call)
{
#if COLIBRI_HAS_EXPERTS
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t slot = state->header.slot;
    (void)kind;
#if COLIBRI_HAS_DENSE
    if (COLIBRI_KIND_N_EXPERTS(kind) == 0) {
        return;
    }
#endif
    if (slot == 0) {
        memset(state->q, 0, COLIBRI_HIDDEN_SIZE * sizeof(float));
    }
    colibri_kernels.axpy(state->q, weight_of(call), state->scratch + COLIBRI_SCRATCH_OUT, COLIBRI_HIDDEN_SIZE);
    if (colibri_next_slot(state) == COLIBRI_KIND_N_SLOTS(kind)) {
        colibri_kernels.scale(state->q, 1.0f, COLIBRI_HIDDEN_SIZE); /* snap */
#if COLIBRI_HAS_OUTPUT_BIAS
        const size_t bias = COLIBRI_KIND_FFN_BIAS_AT(kind);
        colibri_add_bias(state->q, colibri_vector_at(colibri_layer_bytes(call), bias), 0, COLIBRI_HIDDEN_SIZE);
#endif
    }
#else
    (void)call;
#endif
}
