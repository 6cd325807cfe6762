/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

colibri_status colibri_state_init(colibri_state_t *state, const colibri_model_t *model)
{
    if (state == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if (((uintptr_t)state & 15u) != 0) {
        return COLIBRI_ERR_STATE_ALIGN;
    }
    colibri_status status = colibri_check_model(model);
    if (status != COLIBRI_OK) {
        return status;
    }
    memset(state, 0, sizeof(*state));
    state->header.magic = COLIBRI_STATE_MAGIC ^ colibri_config_hash[0];
    return COLIBRI_OK;
}

int32_t colibri_position(const colibri_state_t *state)
{
    colibri_status status = colibri_check_state(state);
    return status == COLIBRI_OK ? (int32_t)state->header.position : status;
}

colibri_status colibri_rewind(colibri_state_t *state, int32_t position)
{
    colibri_status status = colibri_check_state(state);
    if (status != COLIBRI_OK) {
        return status;
    }
    if (position < 0 || (uint32_t)position > state->header.position) {
        return COLIBRI_ERR_POSITION;
    }
    uint32_t magic = state->header.magic;
#if COLIBRI_HAS_ENCODER
    uint32_t source_len = state->header.source_len;
#endif
    memset(&state->header, 0, sizeof(state->header));
    state->header.magic = magic;
#if COLIBRI_HAS_ENCODER
    state->header.source_len = source_len;
#endif
    state->header.position = (uint32_t)position;
    return COLIBRI_OK;
}
