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
    for (uint32_t i = 0; i < COLIBRI_ROTARY_DIM / 2; i++) {
        float *pair = head + PAIR_STEP * i;
        float x0 = pair[0];
        float x1 = pair[PAIR_DISTANCE];
        float s = state->rope_sin[i];
        float c = state->rope_cos[i];
        pair[0] = colibri_snap(colibri_fma(-x1, s, colibri_snap(x0 * c)));
        pair[PAIR_DISTANCE] = colibri_snap(colibri_fma(x0, s, colibri_snap(x1 * c)));
    }
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
    for (uint32_t i = 0; i < COLIBRI_Q_ELEMS; i++) {
        state->q[i] = colibri_snap(state->q[i] * COLIBRI_ATTENTION_SCALE);
    }
    for (uint32_t head = 0; head < COLIBRI_N_KV_HEADS; head++) {
        rotate(state, k + head * COLIBRI_HEAD_DIM);
    }
    if (colibri_check_range(state->q, COLIBRI_Q_ELEMS) != COLIBRI_OK || colibri_check_range(k, COLIBRI_KV_ELEMS) != COLIBRI_OK ||
        colibri_check_range(v, COLIBRI_KV_ELEMS) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
    append(state, k, v);
    return COLIBRI_OK;
}
