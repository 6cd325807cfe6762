/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"
#include "internal.h"

void colibri_rope_prepare(const colibri_model_t *model, colibri_state_t *state)
{
#if COLIBRI_HAS_ROPE
    const float *inv_freq = colibri_floats_at(model->image + (size_t)COLIBRI_INV_FREQ_AT);
    float position = (float)(int32_t)state->header.position;
    for (uint32_t i = 0; i < COLIBRI_MAX_ROPE_PAIRS; i++) {
        colibri_sincos_t value = colibri_sincos(position * inv_freq[i]);
        state->rope_sin[i] = value.sin;
        state->rope_cos[i] = value.cos;
    }
#if COLIBRI_HAS_ROPE_FACTOR
    const float *factor = colibri_floats_at(model->image + (size_t)COLIBRI_ROPE_FACTOR_AT);
    for (uint32_t i = 0; i < COLIBRI_MAX_ROPE_PAIRS; i++) {
        state->rope_sin[i] = colibri_snap(state->rope_sin[i] * factor[i]);
        state->rope_cos[i] = colibri_snap(state->rope_cos[i] * factor[i]);
    }
#endif
#else
    (void)model;
    (void)state;
#endif
}

void colibri_rope(const colibri_state_t *state, uint32_t kind, float *heads, uint32_t n_heads, uint32_t stride)
{
#if COLIBRI_HAS_ROPE
    (void)kind;
    const float *cos = state->rope_cos + COLIBRI_KIND_ROPE_FROM(kind);
    const float *sin = state->rope_sin + COLIBRI_KIND_ROPE_FROM(kind);
    for (uint32_t head = 0; head < n_heads; head++) {
        colibri_kernels.rotate(heads, cos, sin, COLIBRI_KIND_ROPE_PAIRS(kind), COLIBRI_KIND_ROPE_STEP(kind),
                               COLIBRI_KIND_ROPE_DISTANCE(kind));
        heads += stride;
    }
#else
    (void)state;
    (void)kind;
    (void)heads;
    (void)n_heads;
    (void)stride;
#endif
}
