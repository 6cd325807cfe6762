/* SPDX-License-Identifier: Apache-2.0 */
/* Answers each request with the status of colibri_selftest, and with the logits of token 1 computed in the state that it left. */
#include "common/app.h"

const colibri_app_kind_t colibri_app_kind = {'V', 0};

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
    static const int32_t id = 1;
    if (colibri_request_end(request) != 0) {
        return COLIBRI_APP_ERR_REQUEST;
    }
    colibri_status found = colibri_selftest(model, &colibri_app_state, colibri_app_logits.values);
    colibri_status status = colibri_forward(model, &colibri_app_state, &id, 1, colibri_app_logits.values, NULL);
    if (status != COLIBRI_OK) {
        return status;
    }
    colibri_app_write_logits('F', NULL);
    return found;
}
