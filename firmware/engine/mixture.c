/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture of attention: the heads of a slot are an expert's, and so is their output projection (docs/NUMERICS.md, section 7.4). */
#include "internal.h"

#if COLIBRI_HAS_MIXTURE

const uint8_t *colibri_attention_expert(const colibri_call_t *call)
{
    const colibri_state_t *state = call->state;
    const uint32_t kind = colibri_kind_of(state);
    const size_t index = (size_t)state->expert_ids[state->header.slot];
    (void)kind;
    return call->model->image + COLIBRI_LAYER_ATTN_EXPERTS_AT(state->header.layer) + index * COLIBRI_KIND_ATTN_EXPERT_STRIDE(kind);
}

void colibri_combine_attention(const colibri_call_t *call)
{
    colibri_state_t *state = call->state;
    const uint32_t slot = state->header.slot;
    const uint32_t kind = colibri_kind_of(state);
    float *sum = state->scratch + COLIBRI_SCRATCH_SUM;
    float *out = state->scratch + COLIBRI_SCRATCH_OUT;
    (void)kind;
    if (slot == 0) {
        memset(sum, 0, COLIBRI_HIDDEN_SIZE * sizeof(float));
    }
    colibri_kernels.axpy(sum, state->expert_weights[slot], out, COLIBRI_HIDDEN_SIZE);
    if (slot + 1 < COLIBRI_KIND_ATTN_TOP_K(kind)) {
        return;
    }
    memcpy(out, sum, COLIBRI_HIDDEN_SIZE * sizeof(float));
    colibri_kernels.scale(out, 1.0f, COLIBRI_HIDDEN_SIZE); /* snap */
#if COLIBRI_HAS_BIAS
    const size_t bias = COLIBRI_KIND_ATTN_O_BIAS_AT(kind);
    colibri_add_bias(out, colibri_vector_at(colibri_layer_bytes(call), bias), 0, COLIBRI_HIDDEN_SIZE);
#endif
}

#endif
