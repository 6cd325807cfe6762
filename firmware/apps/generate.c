/* SPDX-License-Identifier: Apache-2.0 */
/* generate: continue a prompt, one 'K' frame a token. RAM: the state, the logits, a few words. */
#include "common/generation.h"

const colibri_app_kind_t colibri_app_kind = {'G', 1};

/* The ids are read into the logits' place. A prompt longer than the vocabulary is read in pieces while it is computed. */
static colibri_status read_prompt(const colibri_model_t *model, colibri_request_t *request, int32_t *last_id)
{
    colibri_status status = COLIBRI_OK;
    uint32_t n_ids = colibri_request_read_u32(request);
    if (request->bad || request->left_bytes % 4u != 0 || request->left_bytes / 4u != n_ids) {
        return COLIBRI_APP_ERR_REQUEST;
    }
    if (n_ids < 1 || n_ids > COLIBRI_MAX_SEQ) {
        return n_ids < 1 ? COLIBRI_ERR_SEQ_LEN : COLIBRI_ERR_CONTEXT_FULL;
    }
    while (n_ids > 0) {
        uint32_t n = n_ids < COLIBRI_VOCAB_SIZE ? n_ids : COLIBRI_VOCAB_SIZE;
        colibri_request_read(request, colibri_app_logits.ids, n * sizeof colibri_app_logits.ids[0]);
        n_ids -= n;
        if (n_ids == 0) {
            if (colibri_request_end(request) != 0) {
                return COLIBRI_APP_ERR_REQUEST;
            }
            n--;
            *last_id = colibri_app_logits.ids[n];
        }
        if (n > 0) {
            status = colibri_forward(model, &colibri_app_state, colibri_app_logits.ids, (int32_t)n, NULL, NULL);
            if (status != COLIBRI_OK) {
                return status;
            }
        }
    }
    return COLIBRI_OK;
}

#if COLIBRI_HAS_ENCODER
/* A whole request is read, and its checksum compared, before the first result is sent; the encoder has none to send. */
static colibri_status encode_source(const colibri_model_t *model, colibri_request_t *request)
{
    static int32_t source_ids[COLIBRI_MAX_SOURCE];
    int32_t n_source = colibri_app_read_source(request, source_ids);
    return n_source < 0 ? n_source : colibri_encode(model, &colibri_app_state, source_ids, n_source, NULL);
}
#endif

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
    colibri_generation_t generation;
    int32_t id = 0;
    colibri_status status = colibri_app_read_generation(request, &generation);
#if COLIBRI_HAS_ENCODER
    if (status == COLIBRI_OK) {
        status = encode_source(model, request);
    }
#endif
    if (status == COLIBRI_OK) {
        status = read_prompt(model, request, &id);
    }
    for (uint32_t i = 0; i < generation.n_new && status == COLIBRI_OK; i++) {
        id = colibri_app_next(model, &generation, id);
        if (id < 0) {
            return id;
        }
        colibri_app_write_id(id);
        if (colibri_app_is_end(&generation, id)) {
            break;
        }
    }
    return status;
}
