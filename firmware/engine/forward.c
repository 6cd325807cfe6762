/* SPDX-License-Identifier: Apache-2.0 */
#include "colibri/port.h"
#include "internal.h"

#if COLIBRI_HAS_ENCODER
colibri_status colibri_encode(const colibri_model_t *model, colibri_state_t *state, const int32_t *source_ids, int32_t n_source,
                              uint64_t *cycle_count)
{
    uint64_t begin = 0;
    if (cycle_count != NULL) {
        begin = colibri_port_cycles();
    }
    colibri_status status;
    do {
        status = colibri_encode_step(model, state, source_ids, n_source, UINT32_MAX);
    } while (status == COLIBRI_MORE);
    if (status == COLIBRI_OK && cycle_count != NULL) {
        *cycle_count = colibri_port_cycles() - begin;
    }
    return status;
}
#endif

colibri_status colibri_forward(const colibri_model_t *model, colibri_state_t *state, const int32_t *input_ids, int32_t seq_len,
                               float *logits, uint64_t *cycle_count)
{
    uint64_t begin = 0;
    if (cycle_count != NULL) {
        begin = colibri_port_cycles();
    }
    colibri_status status;
    do {
        status = colibri_step(model, state, input_ids, seq_len, logits, UINT32_MAX);
    } while (status == COLIBRI_MORE);
    if (status == COLIBRI_OK && cycle_count != NULL) {
        *cycle_count = colibri_port_cycles() - begin;
    }
    return status;
}
