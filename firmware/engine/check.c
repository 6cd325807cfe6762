/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and state, before anything is written: the one place where pointers and indices are judged. */
#include "internal.h"

colibri_status colibri_check_model(const colibri_model_t *model)
{
    if (model == NULL) {
        return COLIBRI_ERR_NULL;
    }
    return model->magic == COLIBRI_MODEL_MAGIC && model->image != NULL ? COLIBRI_OK : COLIBRI_ERR_MODEL;
}

/* The expert of the present slot, where the stage uses it. */
static uint32_t expert_holds(const colibri_state_t *state)
{
#if COLIBRI_MAX_EXPERTS > 0
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t stage = state->header.stage;
    const uint32_t slot = state->header.slot;
    (void)kind;
#if COLIBRI_HAS_EXPERTS
    if (stage >= COLIBRI_STAGE_GATE && stage <= COLIBRI_STAGE_DOWN && slot < COLIBRI_KIND_TOP_K(kind)) {
        return (uint32_t)state->expert_ids[slot] < COLIBRI_KIND_N_EXPERTS(kind);
    }
#endif
#if COLIBRI_HAS_MIXTURE
    if ((stage == COLIBRI_STAGE_Q || stage == COLIBRI_STAGE_O) && slot < COLIBRI_KIND_ATTN_TOP_K(kind)) {
        return (uint32_t)state->expert_ids[slot] < COLIBRI_KIND_ATTN_N_EXPERTS(kind);
    }
#endif
#else
    (void)state;
#endif
    return 1;
}

/* The indices the next unit would use. Between calls they are all 0. */
static uint32_t indices_hold(const colibri_state_t *state)
{
    const colibri_state_header_t *h = &state->header;
    if (h->position > COLIBRI_MAX_SEQ) {
        return 0;
    }
#if COLIBRI_HAS_ENCODER
    if (!colibri_encode_holds(state)) {
        return 0;
    }
    const uint32_t room = h->pass == COLIBRI_PASS_STEP ? COLIBRI_MAX_SEQ - h->position : COLIBRI_MAX_SOURCE - h->done;
#else
    const uint32_t room = COLIBRI_MAX_SEQ - h->position;
#endif
    if (h->seq_len == 0) {
        return (h->done | h->stage | h->layer | h->slot | h->unit) == 0;
    }
    if (h->done >= h->seq_len || h->seq_len - h->done > room || h->logits > 1 ||
        h->stage >= COLIBRI_N_STAGES || h->layer >= COLIBRI_N_LAYERS || h->slot >= colibri_stage_slots(state)) {
        return 0;
    }
#if COLIBRI_HAS_NO_FFN
    if (h->stage > COLIBRI_STAGE_ATTN_RESIDUAL && h->stage < COLIBRI_STAGE_FINAL_NORM &&
        COLIBRI_KIND_N_SLOTS(colibri_kind_of(state)) == 0) {
        return 0;
    }
#endif
#if COLIBRI_HAS_ENCODER
    if (h->pass != COLIBRI_PASS_STEP) {
        return expert_holds(state) && h->unit < colibri_stage_size(state).n_units;
    }
#endif
    if (h->stage >= COLIBRI_STAGE_FINAL_NORM && (h->logits == 0 || h->done + 1 != h->seq_len)) {
        return 0;
    }
    if (!expert_holds(state)) {
        return 0;
    }
    return h->unit < colibri_stage_size(state).n_units;
}

colibri_status colibri_check_state(const colibri_state_t *state)
{
    if (state == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if (((uintptr_t)state & 15u) != 0) {
        return COLIBRI_ERR_STATE_ALIGN;
    }
    if (state->header.magic != (COLIBRI_STATE_MAGIC ^ colibri_config_hash[0])) {
        return COLIBRI_ERR_STATE;
    }
    if (state->header.status != 0) {
        return COLIBRI_ERR_STATE_FAILED;
    }
    return indices_hold(state) ? COLIBRI_OK : COLIBRI_ERR_STATE_CORRUPT;
}

colibri_status colibri_check_call(const colibri_call_t *call, int32_t seq_len, uint32_t *ids_hash)
{
    colibri_status status = colibri_check_model(call->model);
    if (status != COLIBRI_OK) {
        return status;
    }
    status = colibri_check_state(call->state);
    if (status != COLIBRI_OK) {
        return status;
    }
    if (call->input_ids == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if ((((uintptr_t)call->input_ids | (uintptr_t)call->logits) & 3u) != 0) {
        return COLIBRI_ERR_BUFFER_ALIGN;
    }
    if (seq_len < 1) {
        return COLIBRI_ERR_SEQ_LEN;
    }
    const colibri_state_header_t *h = &call->state->header;
#if COLIBRI_HAS_ENCODER
    if (h->seq_len != 0 && (h->pass != COLIBRI_PASS_STEP) != call->encodes) {
        return COLIBRI_ERR_PENDING;
    }
    if (!call->encodes && h->source_len == 0) {
        return COLIBRI_ERR_NO_SOURCE;
    }
    const uint32_t room = call->encodes ? COLIBRI_MAX_SOURCE : COLIBRI_MAX_SEQ - h->position;
#else
    const uint32_t room = COLIBRI_MAX_SEQ - h->position;
#endif
    if (h->seq_len != 0 && (h->seq_len != (uint32_t)seq_len || h->logits != (uint32_t)(call->logits != NULL))) {
        return COLIBRI_ERR_PENDING;
    }
    if (h->seq_len == 0 && (uint32_t)seq_len > room) {
        return COLIBRI_ERR_CONTEXT_FULL;
    }
    uint32_t hash = 2166136261u; /* FNV-1a, a word at a time */
    for (int32_t i = 0; i < seq_len; i++) {
        uint32_t id = (uint32_t)call->input_ids[i];
        if (id >= COLIBRI_VOCAB_SIZE) {
            return COLIBRI_ERR_TOKEN_ID;
        }
        hash = (hash ^ id) * 16777619u;
    }
    if (h->seq_len != 0 && h->ids_hash != hash) {
        return COLIBRI_ERR_PENDING;
    }
    *ids_hash = hash;
    return COLIBRI_OK;
}
