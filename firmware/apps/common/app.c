/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

colibri_state_t colibri_app_state;
colibri_app_logits_t colibri_app_logits;

static void write_status(colibri_status status)
{
    uint32_t crc = colibri_frame_begin('S', colibri_app_kind.tells_position ? 8u : 4u);
    crc = colibri_frame_write_u32(crc, (uint32_t)status);
    if (colibri_app_kind.tells_position) {
        int32_t position = colibri_position(&colibri_app_state);
        crc = colibri_frame_write_u32(crc, position < 0 ? 0u : (uint32_t)position);
    }
    colibri_frame_end(crc);
}

/* The image is checked once, at start; each request starts an empty sequence. */
int colibri_app(void)
{
    colibri_model_t model;
    colibri_request_t request;
    size_t image_bytes;
    const void *image = colibri_port_weights(&image_bytes);
    colibri_status ready = colibri_init(&model, image, image_bytes, COLIBRI_INIT_CHECK_CRC);

    while (colibri_request_begin(&request) == 0) {
        colibri_status status = ready;
        if (request.type == 'E' && colibri_request_end(&request) == 0) {
            return 0;
        }
        if (request.type != colibri_app_kind.request) {
            status = COLIBRI_APP_ERR_REQUEST;
        }
        if (status == COLIBRI_OK) {
            status = colibri_state_init(&colibri_app_state, &model);
        }
        if (status == COLIBRI_OK) {
            status = colibri_app_answer(&model, &request);
        }
        colibri_request_skip(&request);
        write_status(status);
    }
    return 1; /* the request stream ended without 'E' */
}

int32_t colibri_app_read_ids(colibri_request_t *request, int32_t *ids, uint32_t max_ids)
{
    uint32_t n_ids = colibri_request_read_u32(request);
    if (request->bad || request->left_bytes % 4u != 0 || request->left_bytes / 4u != n_ids) {
        return COLIBRI_APP_ERR_REQUEST;
    }
    if (n_ids < 1) {
        return COLIBRI_ERR_SEQ_LEN;
    }
    if (n_ids > max_ids) {
        return COLIBRI_ERR_CONTEXT_FULL;
    }
    colibri_request_read(request, ids, n_ids * sizeof ids[0]);
    return colibri_request_end(request) == 0 ? (int32_t)n_ids : COLIBRI_APP_ERR_REQUEST;
}

#if COLIBRI_HAS_ENCODER
int32_t colibri_app_read_source(colibri_request_t *request, int32_t *source_ids)
{
    uint32_t n_ids = colibri_request_read_u32(request);
    if (request->bad || request->left_bytes / 4u < n_ids) {
        return COLIBRI_APP_ERR_REQUEST;
    }
    if (n_ids < 1) {
        return COLIBRI_ERR_SEQ_LEN;
    }
    if (n_ids > COLIBRI_MAX_SOURCE) {
        return COLIBRI_ERR_CONTEXT_FULL;
    }
    colibri_request_read(request, source_ids, n_ids * sizeof source_ids[0]);
    return (int32_t)n_ids;
}
#endif

void colibri_app_write_logits(char type, const uint32_t *position)
{
    uint32_t logits_bytes = (uint32_t)sizeof colibri_app_logits.values;
    uint32_t crc = colibri_frame_begin(type, logits_bytes + (position == NULL ? 0u : 4u));
    if (position != NULL) {
        crc = colibri_frame_write_u32(crc, *position);
    }
    colibri_frame_end(colibri_frame_write(crc, colibri_app_logits.values, logits_bytes));
}
