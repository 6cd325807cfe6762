/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a source: a layer's attention sees all of its tokens, so all go through a part of the layer before the next part.
 *
 *     for each layer of the encoder:  keys and values of every token;  then the rest of the layer for every token
 *     for every token:                the encoder's norm, then keys and values of every layer with cross-attention
 *
 * The header's `done` is the token. Its residual stream waits in `source` while others have their turn.
 */
#include "internal.h"

#if COLIBRI_HAS_ENCODER

/* The first layer with cross-attention from `layer` on; COLIBRI_N_LAYERS: there is none. */
static uint32_t cross_layer(uint32_t layer)
{
    while (layer < COLIBRI_N_LAYERS && COLIBRI_KIND_OVER(COLIBRI_LAYER_KIND(layer)) != COLIBRI_OVER_ENCODED) {
        layer++;
    }
    return layer;
}

static float *stream_of(colibri_state_t *state)
{
    return state->source + (size_t)state->header.done * COLIBRI_HIDDEN_SIZE;
}

void colibri_encode_load(colibri_state_t *state)
{
    memcpy(state->x, stream_of(state), COLIBRI_HIDDEN_SIZE * sizeof(float));
}

void colibri_encode_store(colibri_state_t *state)
{
    memcpy(stream_of(state), state->x, COLIBRI_HIDDEN_SIZE * sizeof(float));
}

void colibri_encode_begin(colibri_state_t *state)
{
    state->header.position = 0;
    state->header.source_len = 0;
    state->header.pass = COLIBRI_PASS_KEYS;
}

uint32_t colibri_encode_ends(const colibri_state_t *state)
{
    const uint32_t stage = state->header.stage;
    if (state->header.pass != COLIBRI_PASS_REST) {
        return stage == COLIBRI_STAGE_ROPE || stage == COLIBRI_STAGE_FINAL_NORM;
    }
#if COLIBRI_HAS_NO_FFN
    if (COLIBRI_KIND_N_SLOTS(colibri_kind_of(state)) == 0) {
        return stage == COLIBRI_STAGE_ATTN_RESIDUAL;
    }
#endif
    return stage == COLIBRI_STAGE_FFN_RESIDUAL;
}

static void next_pass(colibri_state_t *state)
{
    colibri_state_header_t *h = &state->header;
    h->done = 0;
    if (h->pass == COLIBRI_PASS_KEYS) {
        h->pass = COLIBRI_PASS_REST;
#if COLIBRI_HAS_CAPACITY
        memset(state->taken, 0, sizeof(state->taken));
#endif
    } else if (h->pass == COLIBRI_PASS_REST) {
        h->layer++;
        h->pass = h->layer < COLIBRI_N_ENCODER_LAYERS ? COLIBRI_PASS_KEYS : COLIBRI_PASS_CROSS;
    } else {
        h->pass = COLIBRI_PASS_STEP;
    }
}

uint32_t colibri_encode_next(colibri_state_t *state)
{
    colibri_state_header_t *h = &state->header;
    if (h->pass == COLIBRI_PASS_CROSS) {
        const uint32_t layer = cross_layer(h->stage == COLIBRI_STAGE_FINAL_NORM ? COLIBRI_N_ENCODER_LAYERS : h->layer + 1);
        h->layer = layer < COLIBRI_N_LAYERS ? layer : COLIBRI_N_ENCODER_LAYERS;
        if (layer < COLIBRI_N_LAYERS) {
            h->stage = COLIBRI_STAGE_K;
            return 0;
        }
    }
    if (h->pass == COLIBRI_PASS_REST) {
        colibri_encode_store(state);
    }
    h->done++;
    if (h->done == h->seq_len) {
        next_pass(state);
    }
    if (h->pass == COLIBRI_PASS_STEP) {
        h->source_len = h->seq_len;
        h->layer = 0;
        h->stage = COLIBRI_STAGE_EMBED;
        return 1;
    }
    h->stage = h->pass == COLIBRI_PASS_CROSS ? COLIBRI_STAGE_FINAL_NORM : COLIBRI_STAGE_ATTN_NORM;
    if (h->pass == COLIBRI_PASS_KEYS && h->layer == 0) {
        h->stage = COLIBRI_STAGE_EMBED;
    }
    return 0;
}

uint32_t colibri_encode_holds(const colibri_state_t *state)
{
    const colibri_state_header_t *h = &state->header;
    const uint32_t stage = h->stage;
    if (h->source_len > COLIBRI_MAX_SOURCE || h->pass > COLIBRI_PASS_CROSS) {
        return 0;
    }
    if (h->pass == COLIBRI_PASS_STEP) {
        const uint32_t outside = stage == COLIBRI_STAGE_EMBED || stage >= COLIBRI_STAGE_FINAL_NORM;
        return h->seq_len == 0 || (h->source_len != 0 && (outside ? h->layer == 0 : h->layer >= COLIBRI_N_ENCODER_LAYERS));
    }
    if (h->seq_len == 0 || h->seq_len > COLIBRI_MAX_SOURCE || h->position != 0 || h->source_len != 0 || h->logits != 0) {
        return 0;
    }
    if (h->pass == COLIBRI_PASS_CROSS) {
        if (stage == COLIBRI_STAGE_FINAL_NORM) {
            return h->layer == COLIBRI_N_ENCODER_LAYERS;
        }
        return h->layer < COLIBRI_N_LAYERS && cross_layer(h->layer) == h->layer && stage >= COLIBRI_STAGE_K &&
               stage <= COLIBRI_STAGE_ROPE;
    }
    if (h->pass == COLIBRI_PASS_KEYS) {
        return h->layer < COLIBRI_N_ENCODER_LAYERS && stage <= COLIBRI_STAGE_ROPE && (stage != COLIBRI_STAGE_EMBED || h->layer == 0);
    }
    return h->layer < COLIBRI_N_ENCODER_LAYERS && stage != COLIBRI_STAGE_EMBED && stage < COLIBRI_STAGE_FINAL_NORM;
}

#endif
