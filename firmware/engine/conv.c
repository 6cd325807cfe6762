/* SPDX-License-Identifier: Apache-2.0 */
/* Gated short convolution (docs/NUMERICS.md, section 7.6). The cache keeps every position's g, so that a sequence can go back. */
#include "internal.h"

#if COLIBRI_HAS_CONVOLUTION

/* The weighted sum over the last positions, of channel i. */
static float convolve(const float *taps, const float *g, uint32_t n_taps, uint32_t position)
{
    float a = 0.0f;
    for (uint32_t j = position + 1 < n_taps ? n_taps - 1 - position : 0; j < n_taps; j++) {
        a = colibri_fma(taps[j], g[(size_t)(position + 1 + j - n_taps) * COLIBRI_HIDDEN_SIZE], a);
    }
    return colibri_snap(a);
}

colibri_status colibri_convolve(const colibri_call_t *call)
{
    colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t n_taps = COLIBRI_KIND_TAPS(kind);
    const uint32_t position = state->header.position;
    const uint8_t *layer = colibri_layer_bytes(call);
    const float *taps = colibri_floats_at(layer + COLIBRI_KIND_CONV_TAPS_AT(kind));
    const float *b = state->scratch + COLIBRI_SCRATCH_CONV;
    const float *c = b + COLIBRI_HIDDEN_SIZE;
    const float *u = c + COLIBRI_HIDDEN_SIZE;
    float *cache = state->conv + COLIBRI_LAYER_CONV_AT(state->header.layer);
    float *g = cache + (size_t)position * COLIBRI_HIDDEN_SIZE;
    float *h = state->q;

    for (uint32_t i = 0; i < COLIBRI_HIDDEN_SIZE; i++) {
        g[i] = colibri_snap(b[i] * u[i]);
    }
    if (colibri_check_range(g, COLIBRI_HIDDEN_SIZE) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
    for (uint32_t i = 0; i < COLIBRI_HIDDEN_SIZE; i++) {
        h[i] = convolve(taps, cache + i, n_taps, position);
        taps += COLIBRI_PAD8(n_taps);
    }
#if COLIBRI_HAS_BIAS
    const size_t bias = COLIBRI_KIND_CONV_TAPS_BIAS_AT(kind);
    colibri_add_bias(h, colibri_vector_at(layer, bias), 0, COLIBRI_HIDDEN_SIZE);
#endif
    for (uint32_t i = 0; i < COLIBRI_HIDDEN_SIZE; i++) {
        h[i] = colibri_snap(c[i] * h[i]);
    }
    memset(h + COLIBRI_HIDDEN_SIZE, 0, (COLIBRI_HIDDEN_PAD - COLIBRI_HIDDEN_SIZE) * sizeof(float));
    return colibri_check_range(h, COLIBRI_HIDDEN_SIZE);
}

#endif
