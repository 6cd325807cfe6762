/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"
#include "internal.h"

#if COLIBRI_ROTARY_DIM > 0

/* Elements of pair i: adjacent 2i and 2i + 1, half i and i + n/2. */
#if COLIBRI_ROPE_ADJACENT
#define PAIR_STEP 2
#define PAIR_DISTANCE 1
#else
#define PAIR_STEP 1
#define PAIR_DISTANCE (COLIBRI_ROTARY_DIM / 2)
#endif

void colibri_rope_prepare(const colibri_model_t *model, colibri_state_t *state)
{
    const float *inv_freq = colibri_floats_at(model->image + (size_t)COLIBRI_OFFSET_INV_FREQ);
    float position = (float)(int32_t)state->header.position;
    for (uint32_t i = 0; i < COLIBRI_ROTARY_DIM / 2; i++) {
        colibri_sincos_t value = colibri_sincos(position * inv_freq[i]);
        state->rope_sin[i] = value.sin;
        state->rope_cos[i] = value.cos;
    }
}

static void rotate(const colibri_state_t *state, float *head)
{
    colibri_kernels.rotate(head, state->rope_cos, state->rope_sin, COLIBRI_ROTARY_DIM / 2, PAIR_STEP, PAIR_DISTANCE);
}

#else

void colibri_rope_prepare(const colibri_model_t *model, colibri_state_t *state)
{
    (void)model;
    (void)state;
}

static void rotate(const colibri_state_t *state, float *head)
{
    (void)state;
    (void)head;
}

#endif

/* The least magnitude that the cache cannot hold: of f16, 65520, which rounds to infinity. */
#if COLIBRI_KV_F16
#define KV_RANGE_BITS 0x477ff000u
#else
#define KV_RANGE_BITS COLIBRI_RANGE_BITS
#endif

static void append(colibri_state_t *state, const float *k, const float *v)
{
    uint32_t layer = state->header.layer;
    uint32_t position = state->header.position;
#if COLIBRI_KV_Q8
    for (uint32_t head = 0; head < COLIBRI_N_KV_HEADS; head++) {
        uint32_t at = head * COLIBRI_HEAD_DIM;
        colibri_kernels.quantise(&state->k[layer][position][at], &state->k_scale[layer][position][head], k + at, COLIBRI_HEAD_DIM);
        colibri_kernels.quantise(&state->v[layer][position][at], &state->v_scale[layer][position][head], v + at, COLIBRI_HEAD_DIM);
    }
#elif COLIBRI_KV_F16
    colibri_kernels.narrow_f16(state->k[layer][position], k, COLIBRI_KV_ELEMS);
    colibri_kernels.narrow_f16(state->v[layer][position], v, COLIBRI_KV_ELEMS);
#else
    memcpy(state->k[layer][position], k, sizeof(state->k[layer][position]));
    memcpy(state->v[layer][position], v, sizeof(state->v[layer][position]));
#endif
}

colibri_status colibri_rope(colibri_state_t *state)
{
    float *k = state->scratch + COLIBRI_SCRATCH_K;
    float *v = state->scratch + COLIBRI_SCRATCH_V;
    for (uint32_t head = 0; head < COLIBRI_N_HEADS; head++) {
        rotate(state, state->q + head * COLIBRI_HEAD_DIM);
    }
    colibri_kernels.scale(state->q, COLIBRI_ATTENTION_SCALE, COLIBRI_Q_ELEMS);
    for (uint32_t head = 0; head < COLIBRI_N_KV_HEADS; head++) {
        rotate(state, k + head * COLIBRI_HEAD_DIM);
    }
    if (colibri_check_range(state->q, COLIBRI_Q_ELEMS) != COLIBRI_OK ||
        colibri_kernels.absmax(k, COLIBRI_KV_ELEMS) >= KV_RANGE_BITS ||
        colibri_kernels.absmax(v, COLIBRI_KV_ELEMS) >= KV_RANGE_BITS) {
        return COLIBRI_ERR_RANGE;
    }
    append(state, k, v);
    return COLIBRI_OK;
}
